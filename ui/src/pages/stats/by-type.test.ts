import { expect, test } from "vitest";
import type { Stats } from "@/api/model";
import { STATUSES } from "@/api/model";
import { typeBars } from "@/pages/stats/by-type";

const none = { pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0, waiting: 0 };

function stats(byType: Record<string, Partial<typeof none>>): Stats {
  const filled = Object.entries(byType).map(([type, counts]) => [
    type,
    { ...none, handled: true, oldestDueSeconds: null, ...counts },
  ]);
  return { ...none, byType: Object.fromEntries(filled) };
}

test("most tasks first, and all others in one", () => {
  const bars = typeBars(
    stats({ a: { completed: 1 }, b: { failed: 9 }, c: { pending: 4 }, d: { pending: 2 } }),
    STATUSES,
    3,
  );
  expect(bars.map(({ type, types, total }) => [type, types, total])).toEqual([
    ["b", 1, 9],
    ["c", 1, 4],
    [null, 2, 3],
  ]);
  expect(bars[2]?.counts).toEqual({ pending: 2, processing: 0, completed: 1, failed: 0, cancelled: 0 });
});

test("statuses that are not shown do not count", () => {
  const bars = typeBars(
    stats({ a: { completed: 100, failed: 1 }, b: { failed: 2 }, c: { completed: 5 } }),
    ["failed"],
    9,
  );
  expect(bars.map(({ type, total }) => [type, total])).toEqual([
    ["b", 2],
    ["a", 1],
  ]);
});
