import type { Task } from "@/api/model";

/** Whether a row shows the same. Every change of a task has its own version; a request to stop may not. */
export function looksSame(a: Task, b: Task): boolean {
  return (
    a === b ||
    (a.id === b.id &&
      a.version === b.version &&
      a.updatedAt === b.updatedAt &&
      a.status === b.status &&
      a.cancelRequestedAt === b.cancelRequestedAt)
  );
}
