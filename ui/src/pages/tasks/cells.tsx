/** What the columns of the table and the cards on a phone show of a task. */
import { Link } from "@tanstack/react-router";
import { now } from "@/api/clock";
import type { Task } from "@/api/model";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { Duration, RelativeTime } from "@/components/times";
import { latestRun } from "@/pages/tasks/ran";
import { escapeText } from "@/text/escape";

/** The end of an ID, which differs the most between neighbours. */
export const shortId = (id: string): string => id.slice(-12);

export function IdCell({ task }: { task: Task }) {
  return (
    <span className="inline-flex items-center gap-0.5 whitespace-nowrap">
      <Link
        to="/tasks/$taskId"
        params={{ taskId: task.id }}
        title={task.id}
        className="font-mono text-accent text-xs hover:underline"
      >
        {shortId(task.id)}
      </Link>
      <CopyButton text={task.id} label="Copy ID" />
    </span>
  );
}

export function TypeCell({ task }: { task: Task }) {
  return (
    <span title={escapeText(task.type)} className="block truncate font-medium">
      <SafeText text={task.type} max={120} />
    </span>
  );
}

/** With what it waits for, where time alone ends it. */
export function StatusCell({ task }: { task: Task }) {
  const until = task.status === "failed" ? task.nextRetryAt : task.status === "pending" ? task.runAfter : null;
  const coming = until && Date.parse(until) > now(); // what is due waits for a worker, not for a time
  return (
    <span className="inline-flex items-center gap-2 whitespace-nowrap">
      <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt} />
      {coming && <RelativeTime at={until} className="text-dim text-xs" />}
      {task.status === "processing" && task.cancelRequestedAt && <span className="text-dim text-xs">stopping</span>}
    </span>
  );
}

export function AttemptsCell({ task }: { task: Task }) {
  const most = task.maxAttempts || "∞";
  return (
    <span title={`${task.attempts} of ${task.maxAttempts || "unlimited"} attempts`}>
      {task.attempts}/{most}
    </span>
  );
}

export function CreatedCell({ task }: { task: Task }) {
  return <RelativeTime at={task.createdAt} className="whitespace-nowrap" />;
}

export function AgeCell({ task }: { task: Task }) {
  return <Duration from={task.createdAt} to={task.completedAt} />;
}

export function ClaimedCell({ task }: { task: Task }) {
  const run = latestRun(task);
  return run ? <Duration from={run.from} to={run.to} /> : <span className="text-faint">–</span>;
}

export function WorkerCell({ task }: { task: Task }) {
  // Only a running task has one; afterwards the history tells.
  const worker = task.workerId ?? task.history.at(-1)?.worker;
  if (!worker) return <span className="text-faint">–</span>;
  return (
    <span
      title={`${task.workerId ? "Runs under" : "Last failed under"} ${escapeText(worker)}`}
      className="block truncate text-dim text-xs"
    >
      <SafeText text={worker} max={60} />
    </span>
  );
}
