import { memo } from "react";
import type { Worker } from "@/api/model";
import { classes } from "@/components/classes";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { Cell, Row } from "@/components/table";
import { RelativeTime } from "@/components/times";
import { Heard, Queues, Running, Types, WorkerLink } from "@/pages/workers/worker-parts";
import { WorkerStateBadge } from "@/pages/workers/worker-state-badge";

export const WorkerRow = memo(function WorkerRow({ worker }: { worker: Worker }) {
  const { state } = worker;
  return (
    <Row
      data-worker={worker.id}
      className={classes(state === "lost" && "bg-failed-soft/50", state === "stopped" && "text-dim")}
    >
      <Cell>
        <WorkerStateBadge state={state} />
      </Cell>
      <Cell className="whitespace-nowrap">
        <Heard worker={worker} />
      </Cell>
      <Cell>
        <Running worker={worker} />
      </Cell>
      <Cell>
        <span className="flex items-center gap-1 font-mono text-xs">
          <WorkerLink id={worker.id} className="whitespace-nowrap" />
          <CopyButton text={worker.id} label="Copy worker ID" />
        </span>
      </Cell>
      <Cell className="whitespace-nowrap">
        <SafeText text={worker.hostname} max={60} />
        <span className="text-dim"> · pid {worker.pid}</span>
      </Cell>
      <Cell>
        <Queues queues={worker.queues} />
      </Cell>
      <Cell className="min-w-56">
        <Types types={worker.types} />
      </Cell>
      <Cell className="whitespace-nowrap">
        <RelativeTime at={worker.startedAt} />
      </Cell>
    </Row>
  );
});
