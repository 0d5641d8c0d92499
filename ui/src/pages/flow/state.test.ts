import { expect, test } from "vitest";
import { barOf, inShort, inWords, stateOf } from "@/pages/flow/state";

const NONE = { pending: 0, waiting: 0, processing: 0, retrying: 0, completed: 0, failed: 0, cancelled: 0 };

test.each([
  [{ completed: 1 }, "completed", "completed"],
  [{ completed: 7, failed: 1 }, "failed", "1 of 8 failed"],
  [{ completed: 5, processing: 2, waiting: 1 }, "processing", "5 of 8 completed"],
  [{ waiting: 8 }, "waiting", "8 tasks waiting"],
  [{ completed: 2, cancelled: 6 }, "cancelled", "6 of 8 cancelled"],
  [{ completed: 9_998, pending: 2 }, "pending", "9,998 of 10,000 completed"],
  [{}, "completed", "completed"],
])("%j is %s, in short: %s", (given, state, short) => {
  const counts = { ...NONE, ...given };
  expect([stateOf(counts), inShort(counts)]).toEqual([state, short]);
});

test("in words everything is told, done first", () => {
  expect(inWords({ ...NONE, failed: 1, completed: 5, waiting: 2 })).toBe("5 completed, 1 failed, 2 waiting");
  expect(inWords(NONE)).toBe("no tasks");
});

test("one of ten thousand is seen in a bar, which is full", () => {
  const parts = barOf({ ...NONE, completed: 9_999, failed: 1 });
  expect(parts.map(({ state }) => state)).toEqual(["completed", "failed"]);
  expect(parts[1]?.width).toBeGreaterThan(1);
  expect((parts[1]?.from ?? 0) + (parts[1]?.width ?? 0)).toBeCloseTo(100);
});
