import { expect, it } from "vitest";
import type { TaskDetail } from "@/api/model";
import { countdown } from "@/pages/task/countdown";
import { readAgainIn } from "@/pages/task/freshness";
import { isCut, lastLine } from "@/text/last-line";

it.each([
  [61_000, "in 1m 1s"],
  [9_001, "in 10s"],
  [1, "in 1s"],
  [0, "any moment"],
  [-5, "any moment"],
  [Number.NaN, "any moment"],
])("%d ms are left: %s", (ms, text) => expect(countdown(ms)).toBe(text));

it.each([
  ["Traceback:\n  File x\nValueError: boom\n", "ValueError: boom"],
  ["ValueError: boom\n  a note of two\n  lines", "ValueError: boom"],
  ["one line", "one line"],
  ["   ", ""],
])("the line that says it of %j is %j", (error, line) => expect(lastLine(error)).toBe(line));

it("knows an error of which the middle was cut when it was stored", () => {
  expect(isCut("Traceback:\n  File x\n... cut ...\nValueError: boom")).toBe(true);
  expect(isCut("Traceback:\n  File x\nValueError: cut")).toBe(false);
});

it("reads a task again when its time comes, and what is over never", () => {
  const waiting = (until: string | null) =>
    ({ completedAt: null, waitingFor: [{ cause: "retry", text: "", until }] }) as unknown as TaskDetail;
  expect(readAgainIn(undefined, 0)).toBe(false);
  expect(readAgainIn({ completedAt: "2026-01-01T00:00:00Z", waitingFor: [] } as unknown as TaskDetail, 0)).toBe(false);
  expect(readAgainIn(waiting(null), 0)).toBe(5000);
  expect(readAgainIn(waiting(new Date(60_000).toISOString()), 0)).toBe(5000);
  expect(readAgainIn(waiting(new Date(2_000).toISOString()), 0)).toBe(2250);
  expect(readAgainIn(waiting(new Date(2_000).toISOString()), 3000)).toBe(5000);
});
