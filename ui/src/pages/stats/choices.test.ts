import { expect, test } from "vitest";
import { cleanUpQuery, faultOf } from "@/pages/stats/clean-up-choice";
import { earlierWindow, minutesOf, readStatsSearch, windowOf } from "@/pages/stats/ranges";
import { lastLine } from "@/text/last-line";

test("an address with nonsense shows what it would without", () => {
  expect(readStatsSearch({ range: "9y", type: "", view: "pie" })).toEqual({});
  expect(readStatsSearch({ range: "7d", type: "a b", view: "table", other: "x" })).toEqual({
    range: "7d",
    type: "a b",
    view: "table",
  });
  expect(minutesOf("60d")).toBe(86_400);
});

test("a time of one's own is in the address, and wins over a range", () => {
  const [from, to] = ["2030-01-01T10:00:00.000Z", "2030-01-01T11:30:00.000Z"];
  const now = Date.parse("2030-01-02T12:00:00Z");
  expect(readStatsSearch({ from, to, range: "7d", compare: "week", scale: "log" })).toEqual({
    from,
    to,
    compare: "week",
    scale: "log",
  });
  expect(readStatsSearch({ from: to, to: from, compare: "century", scale: "odd" })).toEqual({});
  expect(windowOf({ from, to }, now)).toEqual({ minutes: 90, until: to });
  expect(windowOf({ from }, now)).toEqual({ minutes: 26 * 60 });
  expect(windowOf({ range: "6h" }, now)).toEqual({ minutes: 360 });
  expect(earlierWindow({ minutes: 60 }, "day", now)).toEqual({ minutes: 60, until: "2030-01-01T12:00:00.000Z" });
  expect(earlierWindow({ minutes: 90, until: to }, "week", now).until).toBe("2029-12-25T11:30:00.000Z");
});

test("the line of a traceback that says what happened", () => {
  expect(lastLine("Traceback:\n  File x\nValueError: no\n\n")).toBe("ValueError: no");
  expect(lastLine(null)).toBe("");
});

test.each(["", " ", "-1", "x", "1e9"])("an age of %j is refused", (age) => {
  expect(faultOf({ age, unit: "days", statuses: ["completed"] })).not.toBeNull();
});

test("a clean-up needs a status, and its moment is exact", () => {
  expect(faultOf({ age: "1", unit: "days", statuses: [] })).not.toBeNull();
  const choice = { age: "1.5", unit: "hours", statuses: ["failed"] } as const;
  expect(faultOf(choice)).toBeNull();
  expect(cleanUpQuery(choice, Date.parse("2030-01-01T12:00:00Z"))).toEqual({
    olderThan: "2030-01-01T10:30:00.000Z",
    status: ["failed"],
  });
});
