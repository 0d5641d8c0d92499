import { expect, test } from "vitest";
import { type Kind, logTicksTo, ticksTo } from "@/pages/stats/scale";

test.each<[number, Kind, number[]]>([
  [0, "count", [0, 1]],
  [3, "count", [0, 1, 2, 3]],
  [165, "count", [0, 50, 100, 150, 200]],
  [4_100_000, "count", [0, 1e6, 2e6, 3e6, 4e6, 5e6]],
  [0, "share", [0, 0.01]],
  [0.198, "share", [0, 0.05, 0.1, 0.15, 0.2]],
  [1, "share", [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [0, "duration", [0, 1000]],
  [19_000, "duration", [0, 5000, 10_000, 15_000, 20_000]],
  [100_000, "duration", [0, 30_000, 60_000, 90_000, 120_000]],
])("%d as %s", (most, kind, ticks) => {
  expect(ticksTo(most, kind)).toEqual(ticks);
});

test("a logarithmic scale has nothing, and the highest few steps", () => {
  expect(logTicksTo(0, "count")).toEqual([0, 1]);
  expect(logTicksTo(4200, "count")).toEqual([0, 1, 10, 100, 1000, 10_000]);
  expect(logTicksTo(70_000, "duration")).toEqual([0, 100, 1000, 10_000, 60_000, 600_000]);
  expect(logTicksTo(1e14, "count").at(-1)).toBe(1e12);
});

test("whatever the figure, it fits and there are few", () => {
  for (const kind of ["count", "share", "duration"] as const) {
    for (let most = 1e-4; most < 1e13; most *= 1.7) {
      if (kind === "share" && most > 1) break;
      const ticks = ticksTo(most, kind);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most - 1e-9);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }
  }
});
