/** From a flow and its nodes to their tasks. */
import type { FlowNode } from "@/api/model";
import type { State } from "@/pages/flow/state";
import { qualified } from "@/pages/tasks/search/qualified";

const SEARCHED: Record<State, { status: string; finished?: string }> = {
  completed: { status: "completed" },
  cancelled: { status: "cancelled" },
  processing: { status: "processing" },
  pending: { status: "pending" },
  waiting: { status: "pending" },
  failed: { status: "failed", finished: "yes" },
  retrying: { status: "failed", finished: "no" },
};

/** The list of all tasks of a flow; of one type; in one state. */
export function flowTasks(flow: string, type?: string, state?: State) {
  const q = qualified({ flow, ...(type !== undefined && { type }), ...(state && SEARCHED[state]) });
  return { to: "/tasks", search: { q } } as const;
}

/** The task, where it is one; else the list of those of this type. */
export function tasksOf(flow: string, node: FlowNode) {
  if (node.taskId !== null) return { to: "/tasks/$taskId", params: { taskId: node.taskId } } as const;
  return flowTasks(flow, node.type);
}
