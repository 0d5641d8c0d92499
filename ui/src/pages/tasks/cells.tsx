/** What the columns of the table and the cards on a phone show of a task. */
import { Link } from "@tanstack/react-router";
import { now } from "@/api/clock";
import { stringify } from "@/api/exact";
import type { ListedTask } from "@/api/model";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { Duration, RelativeTime } from "@/components/times";
import { escapeText } from "@/text/escape";

const NOTHING = <span className="text-faint">–</span>;

/** The end of an ID, which differs the most between neighbours. */
export const shortId = (id: string): string => id.slice(-12);

export function IdCell({ task }: { task: Pick<ListedTask, "id"> }) {
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

export function TypeCell({ task }: { task: ListedTask }) {
  return (
    <span title={escapeText(task.type)} className="block truncate font-medium">
      <SafeText text={task.type} max={120} />
    </span>
  );
}

/** With what it waits for, where time alone ends it. */
export function StatusCell({ task }: { task: ListedTask }) {
  const until = task.status === "failed" ? task.nextRetryAt : task.status === "pending" ? task.runAfter : null;
  const coming = until && Date.parse(until) > now(); // what is due waits for a worker, not for a time
  return (
    <span className="inline-flex items-center gap-2 whitespace-nowrap">
      <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt} waits={task.waits} />
      {coming && <RelativeTime at={until} className="text-dim text-xs" />}
      {task.status === "processing" && task.cancelRequestedAt && <span className="text-dim text-xs">stopping</span>}
    </span>
  );
}

export function AttemptsCell({ task }: { task: ListedTask }) {
  const most = task.maxAttempts || "∞";
  return (
    <span title={`${task.attempts} of ${task.maxAttempts || "unlimited"} attempts`}>
      {task.attempts}/{most}
    </span>
  );
}

export function CreatedCell({ task }: { task: ListedTask }) {
  return <RelativeTime at={task.createdAt} className="whitespace-nowrap" />;
}

export function AgeCell({ task }: { task: ListedTask }) {
  return <Duration from={task.createdAt} to={task.completedAt} />;
}

export function EndedCell({ task }: { task: ListedTask }) {
  return <RelativeTime at={task.completedAt} className="whitespace-nowrap" />;
}

export function DurationCell({ task }: { task: ListedTask }) {
  if (task.status === "processing" && task.lastAttemptAt) return <Duration from={task.lastAttemptAt} />;
  return task.runMs === null ? NOTHING : <Duration ms={task.runMs} />;
}

export function PriorityCell({ task }: { task: ListedTask }) {
  return <span className={task.priority === 0 ? "text-faint" : ""}>{task.priority}</span>;
}

export function ArgumentsCell({ task }: { task: ListedTask }) {
  return <Line text={task.payloadPreview ?? pairsOf(task.payload)} />;
}

export function TagsCell({ task }: { task: ListedTask }) {
  return <Line text={pairsOf(task.tags)} />;
}

export function IdempotencyCell({ task }: { task: ListedTask }) {
  return <Line text={task.idempotencyKey ?? ""} />;
}

export function ErrorCell({ task }: { task: ListedTask }) {
  return <Line text={task.errorLine ?? ""} className="text-failed" />;
}

/** One line of somebody's text, cut where the column ends; all of it on hover. */
function Line({ text, className = "text-dim" }: { text: string; className?: string }) {
  if (text === "") return NOTHING;
  return (
    <span title={escapeText(text)} className={`block truncate text-xs ${className}`}>
      <SafeText text={text} max={200} />
    </span>
  );
}

/** "order_id=4711 to=ada@example.com" */
export function pairsOf(value: unknown): string {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return stringify(value, 0);
  return Object.entries(value)
    .map(([name, item]) => `${name}=${typeof item === "string" ? item : stringify(item, 0)}`)
    .join(" ");
}

export function WorkerCell({ task }: { task: ListedTask }) {
  const worker = task.workerId ?? task.lastWorkerId;
  if (!worker) return NOTHING;
  return (
    <span
      title={`${task.workerId ? "Runs under" : "Last ran under"} ${escapeText(worker)}`}
      className="block truncate text-dim text-xs"
    >
      <SafeText text={worker} max={60} />
    </span>
  );
}
