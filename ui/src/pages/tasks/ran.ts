import type { Task } from "@/api/model";

export interface Span {
  from: string;
  /** Null while it runs. */
  to: string | null;
}

/** The time it was to run at, as it was submitted; null for at once, or after other tasks. A retry and a snooze move that time, which is then
 * later than an attempt that had begun. */
export function firstDue(task: Task): string | null {
  if (task.after) return null; // it became due when the last of them ended
  const begun = task.history[0]?.started ?? task.lastAttemptAt;
  return task.runAfter && begun && Date.parse(task.runAfter) > Date.parse(begun) ? null : task.runAfter;
}

/** When the latest attempt was claimed and settled; null for a task that waits for its first, or anew. */
export function latestRun(task: Task): Span | null {
  if (task.status === "processing") return task.lastAttemptAt ? { from: task.lastAttemptAt, to: null } : null;
  if (task.status === "pending" || !task.lastAttemptAt) return null;
  if (task.status === "completed") return { from: task.lastAttemptAt, to: task.completedAt ?? task.updatedAt };
  // Failed or cancelled: the history knows when the attempt ended, the task may have waited long since.
  const latest = task.history.at(-1);
  if (latest?.started && latest.ended) return { from: latest.started, to: latest.ended };
  return { from: task.lastAttemptAt, to: task.completedAt ?? task.updatedAt };
}
