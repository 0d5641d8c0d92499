import type { Task } from "@/api/model";

/** Nothing happens to it any more by itself. */
export function isFinished({ completedAt }: Pick<Task, "completedAt">): boolean {
  return completedAt !== null;
}

export function isAskedToStop({ status, cancelRequestedAt }: Pick<Task, "status" | "cancelRequestedAt">): boolean {
  return status === "processing" && cancelRequestedAt !== null;
}
