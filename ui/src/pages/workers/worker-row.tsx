import { Link } from "@tanstack/react-router";
import { memo, useState } from "react";
import type { Worker } from "@/api/model";
import { classes } from "@/components/classes";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { Cell, Row } from "@/components/table";
import { RelativeTime } from "@/components/times";
import { qualified } from "@/pages/tasks/search/qualified";
import { stateOf, type WorkerState } from "@/pages/workers/worker-state";
import { WorkerStateBadge } from "@/pages/workers/worker-state-badge";

const SHOWN_TYPES = 3;

export const WorkerRow = memo(function WorkerRow({ worker }: { worker: Worker }) {
  const state = stateOf(worker);
  return (
    <Row
      data-worker={worker.id}
      className={classes(state === "lost" && "bg-failed-soft/50", state === "stopped" && "text-dim")}
    >
      <Cell>
        <WorkerStateBadge state={state} />
      </Cell>
      <Cell className="whitespace-nowrap">
        <Heard worker={worker} state={state} />
      </Cell>
      <Cell>
        <Running worker={worker} />
      </Cell>
      <Cell>
        <span className="flex items-center gap-1 font-mono text-xs">
          <SafeText text={worker.id} max={80} className="whitespace-nowrap" />
          <CopyButton text={worker.id} label="Copy worker ID" />
        </span>
      </Cell>
      <Cell className="whitespace-nowrap">
        <SafeText text={worker.hostname} max={60} />
        <span className="text-dim"> · pid {worker.pid}</span>
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

function Heard({ worker, state }: { worker: Worker; state: WorkerState }) {
  if (state === "stopped") {
    return (
      <>
        stopped <RelativeTime at={worker.stoppedAt} />
      </>
    );
  }
  return state === "lost" ? (
    <span className="font-medium text-failed">
      last heard <RelativeTime at={worker.seenAt} />
    </span>
  ) : (
    <RelativeTime at={worker.seenAt} />
  );
}

/** How many of its slots are busy, and the way to what it runs. */
function Running({ worker }: { worker: Worker }) {
  const busy = worker.concurrency > 0 ? Math.min(1, worker.running / worker.concurrency) : 0;
  const figures = (
    <>
      {worker.running}
      <span className="text-dim"> of {worker.concurrency}</span>
    </>
  );
  return (
    <span className="flex items-center gap-2 whitespace-nowrap">
      <span className="h-1.5 w-14 overflow-hidden rounded-full bg-raised ring-1 ring-line" aria-hidden="true">
        <span className="block h-full bg-(--chart-processing)" style={{ width: `${busy * 100}%` }} />
      </span>
      {worker.running > 0 ? (
        <Link
          to="/tasks"
          search={{ q: qualified({ worker: worker.id, status: "processing" }) }}
          title="The tasks that it runs"
          className="text-accent hover:underline"
        >
          {figures}
        </Link>
      ) : (
        <span>{figures}</span>
      )}
    </span>
  );
}

function Types({ types }: { types: readonly string[] }) {
  const [all, setAll] = useState(false);
  const shown = all ? types : types.slice(0, SHOWN_TYPES);
  return (
    <span className="flex flex-wrap gap-1">
      {shown.map((type) => (
        <Link
          key={type}
          to="/tasks"
          search={{ q: qualified({ type }) }}
          className="max-w-60 truncate rounded bg-raised px-1.5 py-0.5 text-xs hover:text-accent hover:underline"
        >
          <SafeText text={type} max={60} />
        </Link>
      ))}
      {types.length > SHOWN_TYPES && (
        <button
          type="button"
          aria-expanded={all}
          onClick={() => setAll(!all)}
          className="rounded px-1 text-dim text-xs hover:bg-raised hover:text-text"
        >
          {all ? "fewer" : `${types.length - SHOWN_TYPES} more`}
        </button>
      )}
    </span>
  );
}
