import { expect, test } from "vitest";
import type { Worker } from "@/api/model";
import { fleetOf, inOrder, type WorkerState } from "@/pages/workers/worker-state";

function worker(id: string, state: WorkerState, startedAt = "2030-01-01T00:00:00Z"): Worker {
  return {
    id,
    hostname: "host",
    pid: 1,
    types: [],
    queues: [],
    concurrency: 4,
    running: 1,
    startedAt,
    seenAt: startedAt,
    stoppedAt: null,
    secondsSinceSeen: 0,
    version: null,
    drainRequestedAt: null,
    drainRequestedBy: null,
    state,
    live: state === "live",
  };
}

const workers = [
  worker("gone", "stopped"),
  worker("leaves", "stopping"),
  worker("old", "live"),
  worker("new", "live", "2030-01-01T09:00:00Z"),
  worker("lost", "lost"),
];

test("trouble comes first", () => {
  expect(inOrder(workers).map(({ id }) => id)).toEqual(["lost", "new", "old", "leaves", "gone"]);
});

test("only live workers have slots", () => {
  expect(fleetOf(workers)).toBe("2 live, 1 stopping, 1 lost, 1 stopped · 2 of 8 slots busy");
  expect(fleetOf([worker("lost", "lost")])).toBe("1 lost");
});
