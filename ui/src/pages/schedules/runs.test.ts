import { expect, it } from "vitest";
import type { Schedule, ScheduleRun } from "@/api/model";
import { describe, isFailing, latest } from "@/pages/schedules/runs";

const run = (status: string | null, created = true): ScheduleRun => ({
  slot: "2026-01-01T12:00:00Z",
  firedAt: "2026-01-01T12:00:00Z",
  taskId: "x",
  created,
  status,
});
const schedule = (...runs: ScheduleRun[]) => ({ runs }) as Schedule;

it("is failing by its latest task, not by a time that was left out", () => {
  expect(isFailing(schedule())).toBe(false);
  expect(isFailing(schedule(run("failed"), run("completed")))).toBe(false);
  expect(isFailing(schedule(run("completed"), run("failed"), run("failed", false)))).toBe(true);
  expect(latest(schedule(run("processing", false)))).toBe(null);
});

it("says what became of a run", () => {
  expect(describe(run("completed"))).toMatch(/: completed$/);
  expect(describe(run(null))).toMatch(/: deleted since$/);
  expect(describe(run("processing", false))).toMatch(/: left out/);
});
