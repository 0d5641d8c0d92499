/** How soon a task is read again though no event told of it: a request to stop, a new lease and a time that has come
 * move no figures of the queue. */
import type { TaskDetail } from "@/api/model";
import { isFinished } from "@/pages/task/state";

const EVERY_MS = 5000;
const LEAST_MS = 500;

export function readAgainIn(task: TaskDetail | undefined, now: number): number | false {
  if (!task || isFinished(task)) return false;
  const moments = task.waitingFor
    .map(({ until }) => (until ? Date.parse(until) - now : Number.NaN))
    .filter((left) => left > 0);
  return Math.max(LEAST_MS, Math.min(EVERY_MS, ...moments.map((left) => left + LEAST_MS / 2)));
}
