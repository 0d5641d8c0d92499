/** What may be done to a task, by its status; the server decides, this tells beforehand. */
import type { BulkAction, Task } from "@/api/model";

type Facts = Pick<Task, "status" | "completedAt" | "cancelRequestedAt" | "runAfter" | "after">;

/** Why it is not allowed now; null: it is. */
export function obstacle(action: BulkAction, task: Facts): string | null {
  switch (action) {
    case "retry":
      return task.status === "failed" ? null : `Only failed tasks can be retried; this one is ${task.status}.`;
    case "cancel":
      if (isOver(task)) return `It is over: ${task.status}.`;
      return task.cancelRequestedAt ? "It has been asked to stop." : null;
    case "delete":
      return isOver(task) ? null : "Only finished tasks can be deleted. Cancel it first.";
    case "revive":
      if (task.status === "cancelled") return task.after?.cutBy ? FOLLOWS : null;
      return `Only cancelled tasks can be revived; this one is ${task.status}.`;
    case "run-now":
      return waits(task) ? null : "It waits neither for its time nor for a retry.";
  }
}

const FOLLOWS = "It was cancelled because of another task. Retry or revive that one: this one comes back with it.";

/** The same for several: null if it is allowed for one of them at least. */
export function commonObstacle(action: BulkAction, tasks: readonly Facts[]): string | null {
  if (tasks.some((task) => obstacle(action, task) === null)) return null;
  return NONE[action];
}

export const NONE: Record<BulkAction, string> = {
  retry: "None of them has failed: only failed tasks can be retried.",
  cancel: "None of them waits or runs: there is nothing to cancel.",
  delete: "None of them is finished: only finished tasks can be deleted.",
  revive: "None of them was cancelled: only cancelled tasks can be revived.",
  "run-now": "None of them waits for its time or for a retry.",
};

function waits(task: Facts): boolean {
  return (task.status === "pending" && task.runAfter !== null) || (task.status === "failed" && !isOver(task));
}

function isOver(task: Facts): boolean {
  return task.completedAt !== null;
}
