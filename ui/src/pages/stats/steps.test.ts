import { expect, test } from "vitest";
import type { Series } from "@/api/model";
import { percent, rate, stepsOf, summaryOf } from "@/pages/stats/steps";
import { stepLabel, ticksOf } from "@/pages/stats/time-axis";

const START = Date.parse("2030-01-01T00:00:00Z");

function series(minutes: number, points: Partial<Series["points"][number]>[]): Series {
  const none = { completed: 0, failed: 0, retried: 0, cancelled: 0, runMs: 0 };
  return {
    minutes: minutes * points.length,
    stepMinutes: minutes,
    points: points.map((point, at) => ({
      ...none,
      at: new Date(START + at * minutes * 60_000).toISOString(),
      ...point,
    })),
  };
}

test("a step in which nothing ended has no failure rate and no latency, not zero", () => {
  const [none, some] = stepsOf(series(1, [{}, { completed: 3, failed: 1, retried: 4, p50Ms: 5 }]));
  expect([none?.failedShare, none?.attemptsFailedShare, none?.p50, none?.backlogMs]).toEqual([null, null, null, null]);
  expect([some?.failedShare, some?.attemptsFailedShare, some?.p50]).toEqual([0.25, 0.625, 5]);
  expect([none?.growing, some?.growing]).toEqual([false, true]);
});

test("a backlog of no age is a sample", () => {
  expect(stepsOf(series(1, [{ backlogSeconds: 0 }]))[0]?.backlogMs).toBe(0);
});

test("rates are of the time that has passed, not of the whole last step", () => {
  const steps = stepsOf(series(60, [{ completed: 50 }, { completed: 8, failed: 2, backlogSeconds: 3 }]));
  const summary = summaryOf(steps, START + 75 * 60_000);
  expect(summary.perMinute).toBeCloseTo(60 / 75);
  expect([summary.completed, summary.failed, summary.backlogMs, summary.mostBacklogMs]).toEqual([58, 2, 3000, 3000]);
});

test("no steps are no figures", () => {
  expect(summaryOf([], START)).toMatchObject({ perMinute: 0, failedShare: null, latest: null, mostBacklogMs: null });
});

test("figures have the digits that tell something", () => {
  expect([rate(0), rate(0.254), rate(12.34), rate(1234.5)]).toEqual(["0", "0.25", "12.3", "1,235"]);
  expect([percent(null), percent(0), percent(0.0004), percent(0.25), percent(1)]).toEqual([
    "–",
    "0%",
    "<0.1%",
    "25%",
    "100%",
  ]);
});

test("round times are named below a chart, few enough for a phone", () => {
  for (const [minutes, points] of [
    [1, 61],
    [5, 73],
    [15, 97],
    [180, 57],
    [720, 121],
  ] as const) {
    const steps = stepsOf(series(minutes, Array(points).fill({})));
    const ticks = ticksOf(steps);
    expect(ticks.length).toBeGreaterThanOrEqual(5);
    expect(ticks.length).toBeLessThanOrEqual(9);
  }
  const hour = ticksOf(stepsOf(series(1, Array(61).fill({}))));
  expect(hour.every((at) => new Date(at).getMinutes() % 10 === 0)).toBe(true);
});

test("a step of another day names the day", () => {
  expect(stepLabel({ at: START, until: START + 60_000 })).toMatch(/\D\d\d:\d\d–\d\d:\d\d$/);
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  expect(stepLabel({ at: now, until: now })).toMatch(/^\d\d:\d\d–\d\d:\d\d$/);
});
