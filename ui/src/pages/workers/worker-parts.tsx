import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Worker } from "@/api/model";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";
import { qualified } from "@/pages/tasks/search/qualified";

const SHOWN_TYPES = 3;

/** The way to the worker's own page. */
export function WorkerLink({ id, className }: { id: string; className?: string }) {
  return (
    <Link to="/workers/$workerId" params={{ workerId: id }} className="text-accent hover:underline">
      <SafeText text={id} max={120} {...(className ? { className } : {})} />
    </Link>
  );
}

/** When it was last heard of, and whether that is bad. */
export function Heard({ worker }: { worker: Worker }) {
  const { state } = worker;
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
export function Running({ worker }: { worker: Worker }) {
  if (worker.state === "lost" || worker.state === "stopped") return <span className="text-faint">–</span>;
  const busy = worker.concurrency > 0 ? Math.min(1, worker.running / worker.concurrency) : 0;
  const figures = (
    <>
      {worker.running}
      <span className="text-dim">{worker.state === "stopping" ? " to finish" : ` of ${worker.concurrency}`}</span>
    </>
  );
  return (
    <span className="flex items-center gap-2 whitespace-nowrap">
      {worker.live && (
        <span className="h-1.5 w-14 overflow-hidden rounded-full bg-raised ring-1 ring-line" aria-hidden="true">
          <span className="block h-full bg-(--chart-processing)" style={{ width: `${busy * 100}%` }} />
        </span>
      )}
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

export function Queues({ queues }: { queues: readonly string[] }) {
  return (
    <span data-figure="queues" className="flex flex-wrap gap-x-2 text-xs">
      {queues.map((queue) => (
        <SafeText key={queue} text={queue} max={60} />
      ))}
    </span>
  );
}

export function Types({ types }: { types: readonly string[] }) {
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
