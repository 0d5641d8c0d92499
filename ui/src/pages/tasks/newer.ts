import type { Task } from "@/api/model";

export interface NewTasks {
  count: number;
  /** There are perhaps more: all that were looked at are new. */
  atLeast: boolean;
}

/** IDs grow with time. */
export function newerThan(id: string | undefined, tasks: readonly Pick<Task, "id">[] = [], looked = 0): NewTasks {
  const count = id === undefined ? 0 : tasks.filter((task) => task.id > id).length;
  return { count, atLeast: count > 0 && count === looked };
}
