import { memo } from "react";
import type { Worker } from "@/api/model";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";
import { Heard, Queues, Running, Types, WorkerLink } from "@/pages/workers/worker-parts";
import { WorkerStateBadge } from "@/pages/workers/worker-state-badge";

/** A row for a narrow screen: all in sight, nothing to scroll sideways. */
export const WorkerCard = memo(function WorkerCard({ worker }: { worker: Worker }) {
  const { state } = worker;
  return (
    <li data-worker={worker.id} className={classes("space-y-1.5 px-4 py-3", state === "lost" && "bg-failed-soft/50")}>
      <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-1">
        <span className="flex items-center gap-2">
          <WorkerStateBadge state={state} />
          <Heard worker={worker} />
        </span>
        <Running worker={worker} />
      </div>
      <p className="font-mono text-xs">
        <WorkerLink id={worker.id} className="break-all" />
      </p>
      <p className="text-dim text-xs">
        <SafeText text={worker.hostname} max={60} /> · pid {worker.pid} · started <RelativeTime at={worker.startedAt} />
      </p>
      <p className="flex gap-1.5 text-xs">
        <span className="text-dim">{worker.queues.length === 1 ? "queue" : "queues"}</span>
        <Queues queues={worker.queues} />
      </p>
      <Types types={worker.types} />
    </li>
  );
});
