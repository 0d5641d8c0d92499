import { expect, test } from "vitest";
import type { Series } from "@/api/model";
import { marksOf } from "@/pages/stats/marks";
import { percent, rate, stepsOf, summaryOf, verdictOf } from "@/pages/stats/steps";
import { stepLabel, ticksOf } from "@/pages/stats/time-axis";

const START = Date.parse("2030-01-01T00:00:00Z");

function series(minutes: number, points: Partial<Series["points"][number]>[]): Series {
  const none = { completed: 0, failed: 0, retried: 0, cancelled: 0, runMs: 0 };
  const times = { count: 0, meanMs: null, p50Ms: null, p95Ms: null, p99Ms: null, buckets: [] };
  return {
    minutes: minutes * points.length,
    stepMinutes: minutes,
    until: new Date(START + points.length * minutes * 60_000).toISOString(),
    runTime: times,
    waited: times,
    versions: [],
    points: points.map((point, at) => ({
      ...none,
      at: new Date(START + at * minutes * 60_000).toISOString(),
      ...point,
    })),
  };
}

test("a step in which nothing ended has no failure rate and no latency, not zero", () => {
  const [none, some] = stepsOf(series(1, [{}, { completed: 3, failed: 1, retried: 4, p50Ms: 5 }]), START + 90_000);
  expect([none?.failedShare, none?.attemptsFailedShare, none?.p50, none?.backlogMs]).toEqual([null, null, null, null]);
  expect([some?.failedShare, some?.attemptsFailedShare, some?.p50]).toEqual([0.25, 0.625, 5]);
  expect([none?.growing, some?.growing]).toEqual([false, true]);
});

test("a backlog of no age is a sample", () => {
  expect(stepsOf(series(1, [{ backlogSeconds: 0 }]), START)[0]?.backlogMs).toBe(0);
});

test("rates are of the time that has passed, not of the whole last step", () => {
  const steps = stepsOf(series(60, [{ completed: 50 }, { completed: 8, failed: 2, backlogSeconds: 3 }]), START);
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
    const steps = stepsOf(series(minutes, Array(points).fill({})), START);
    const ticks = ticksOf(steps);
    expect(ticks.length).toBeGreaterThanOrEqual(5);
    expect(ticks.length).toBeLessThanOrEqual(9);
  }
  const hour = ticksOf(stepsOf(series(1, Array(61).fill({})), START));
  expect(hour.every((at) => new Date(at).getMinutes() % 10 === 0)).toBe(true);
});

test("a step of another day names the day", () => {
  expect(stepLabel({ at: START, until: START + 60_000 })).toMatch(/\D\d\d:\d\d–\d\d:\d\d$/);
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  expect(stepLabel({ at: now, until: now })).toMatch(/^\d\d:\d\d–\d\d:\d\d$/);
});

test("what is laid over stands at the same time of its day, and by the hour as a part of it", () => {
  const day = 86_400_000;
  const minutes = series(1, [{ completed: 5 }, { completed: 6 }]);
  const shifted = (other: Series): Series => ({
    ...other,
    points: other.points.map((point) => ({ ...point, at: new Date(Date.parse(point.at) - day).toISOString() })),
  });
  const sameSteps = shifted(series(1, [{ completed: 1, arrived: 7 }]));
  const found = stepsOf(minutes, START, { series: sameSteps, ms: day });
  expect(found.map(({ before }) => before && [before.completed, before.arrived])).toEqual([[1, 7], null]);
  const hours = shifted(series(60, [{ completed: 120, depth: 9, p95Ms: 40 }]));
  const [step] = stepsOf(minutes, START, { series: hours, ms: day });
  expect([step?.before?.completed, step?.before?.depth, step?.before?.p95]).toEqual([2, 9, 40]);
});

test("falling behind is more than chance", () => {
  const verdict = (first: number, last: number, arrived: number) =>
    verdictOf(summaryOf(stepsOf(series(1, [{ depth: first, arrived }, { depth: last }]), START), START));
  expect(verdict(0, 500, 1000)).toBe("behind");
  expect(verdict(500, 0, 1000)).toBe("catching up");
  expect([verdict(0, 5, 10), verdict(1000, 1100, 100_000)]).toEqual(["keeping up", "keeping up"]);
  expect(verdictOf(summaryOf(stepsOf(series(1, [{ depth: 4 }]), START), START))).toBeNull();
});

test("a version is marked at the step that it started in", () => {
  const at = (minutes: number) => new Date(START + minutes * 60_000).toISOString();
  const versions = [
    { version: "1.5", at: at(61) },
    { version: "later", at: at(600) },
  ];
  expect(marksOf({ ...series(60, [{}, {}]), versions })).toEqual([
    { version: "1.5", at: START + 3_600_000, late: false, startedAt: at(61) },
  ]);
});
