import type { Worker } from "@/api/model";

export type WorkerState = Worker["state"];

const ORDER: readonly WorkerState[] = ["lost", "live", "stopping", "stopped"];

/** Trouble first, then those at work, then those that are gone; the newest first among equals. */
export function inOrder(workers: readonly Worker[]): Worker[] {
  return workers.toSorted(
    (one, other) =>
      ORDER.indexOf(one.state) - ORDER.indexOf(other.state) ||
      other.startedAt.localeCompare(one.startedAt) ||
      one.id.localeCompare(other.id),
  );
}

/** "2 live, 1 lost · 3 of 8 slots busy" */
export function fleetOf(workers: readonly Worker[]): string {
  const counted = (["live", "stopping", "lost", "stopped"] as const)
    .map((state) => [workers.filter((worker) => worker.state === state).length, state] as const)
    .filter(([count]) => count > 0)
    .map(([count, state]) => `${count} ${state}`);
  const live = workers.filter(({ live }) => live);
  const sum = (field: "running" | "concurrency") => live.reduce((total, worker) => total + worker[field], 0);
  return [counted.join(", "), live.length ? `${sum("running")} of ${sum("concurrency")} slots busy` : ""]
    .filter(Boolean)
    .join(" · ");
}
