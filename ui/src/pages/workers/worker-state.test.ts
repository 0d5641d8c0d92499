import { expect, test } from "vitest";
import type { Worker } from "@/api/model";
import { fleetOf, inOrder, stateOf } from "@/pages/workers/worker-state";

function worker(
  id: string,
  live: boolean,
  stoppedAt: string | null = null,
  startedAt = "2030-01-01T00:00:00Z",
): Worker {
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
    stoppedAt,
    secondsSinceSeen: 0,
    live,
  };
}

const workers = [
  worker("gone", false, "2030-01-02T00:00:00Z"),
  worker("old", true),
  worker("new", true, null, "2030-01-01T09:00:00Z"),
  worker("lost", false),
];

test("lost is who vanished without a word", () => {
  expect(workers.map(stateOf)).toEqual(["stopped", "live", "live", "lost"]);
});

test("trouble comes first", () => {
  expect(inOrder(workers).map(({ id }) => id)).toEqual(["lost", "new", "old", "gone"]);
});

test("only live workers have slots", () => {
  expect(fleetOf(workers)).toBe("2 live, 1 lost, 1 stopped · 2 of 8 slots busy");
  expect(fleetOf([worker("lost", false)])).toBe("1 lost");
});
