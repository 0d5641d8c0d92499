/** What may be done to a task now. The server decides in the end; this says beforehand, and why not. */
import type { TaskDetail } from "@/api/model";

export type TaskState = Pick<TaskDetail, "status" | "nextRetryAt" | "completedAt" | "cancelRequestedAt">;

export interface Allowed {
  /** Null: it may. Otherwise the reason why it may not. */
  retry: string | null;
  cancel: string | null;
  remove: string | null;
}

const NOT_FAILED: Record<string, string> = {
  pending: "Only a failed task can be retried. This one has yet to run.",
  processing: "Only a failed task can be retried. This one is running.",
  completed: "Only a failed task can be retried. This one completed.",
  cancelled: "Only a failed task can be retried. This one was cancelled.",
};

export function isFinished({ status, completedAt }: TaskState): boolean {
  return status === "completed" || status === "cancelled" || (status === "failed" && completedAt !== null);
}

export function isAskedToStop({ status, cancelRequestedAt }: TaskState): boolean {
  return status === "processing" && cancelRequestedAt !== null;
}

export function allowed(task: TaskState): Allowed {
  const finished = isFinished(task);
  return {
    retry: task.status === "failed" ? null : (NOT_FAILED[task.status] ?? "Only a failed task can be retried."),
    cancel: finished
      ? "It has finished: there is nothing left to cancel."
      : isAskedToStop(task)
        ? "It has been asked to stop already."
        : null,
    remove: finished
      ? null
      : task.status === "processing"
        ? "Only a finished task can be deleted. Cancel it first."
        : "Only a finished task can be deleted. Cancel it first; it waits to run.",
  };
}
