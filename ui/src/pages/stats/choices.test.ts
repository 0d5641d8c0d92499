import { expect, test } from "vitest";
import { cleanUpQuery, faultOf } from "@/pages/stats/clean-up-choice";
import { minutesOf, readStatsSearch } from "@/pages/stats/ranges";
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
