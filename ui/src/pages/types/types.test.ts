import { expect, test } from "vitest";
import type { TaskType } from "@/api/model";
import { concurrencyFault } from "@/pages/types/concurrency";
import { figuresOf } from "@/pages/types/figures";
import { isStranded, sortedBy, sortTypes } from "@/pages/types/sorting";

function type(name: string, given: Partial<TaskType["counts"]> = {}, more: Partial<TaskType> = {}): TaskType {
  const counts = { pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0, waiting: 0, ...given };
  return {
    type: name,
    queue: null,
    counts,
    workers: 1,
    handled: true,
    registered: false,
    paused: false,
    oldestDueSeconds: null,
    runP95Ms: null,
    waitedP95Ms: null,
    ...more,
  };
}

test("figures are sorted from the highest, names from the first", () => {
  const byName = { column: "type", descending: false } as const;
  expect(sortedBy(byName, "pending")).toEqual({ column: "pending", descending: true });
  expect(sortedBy(byName, "type")).toEqual({ column: "type", descending: true });
  const types = [type("b"), type("c", { pending: 1 }), type("a")];
  const names = (sorting: Parameters<typeof sortTypes>[1]) => sortTypes(types, sorting).map((each) => each.type);
  expect(names({ column: "pending", descending: true })).toEqual(["c", "a", "b"]);
  expect(names({ column: "type", descending: true })).toEqual(["c", "b", "a"]);
});

test("a type is stranded only if something waits", () => {
  expect(isStranded(type("a", {}, { handled: false }))).toBe(false);
  expect(isStranded(type("a", { waiting: 1, failed: 1 }, { handled: false }))).toBe(true);
  expect(isStranded(type("a", { pending: 1 }))).toBe(false);
});

test("those that wait for a retry are not counted as failed too", () => {
  const found = figuresOf(type("a", { failed: 5, waiting: 2 }, { oldestDueSeconds: 0.2 }));
  const texts = Object.fromEntries(found.map(({ column, text }) => [column, text]));
  expect(texts).toMatchObject({ waiting: "2", failed: "3", oldest: "1.0 s", workers: "1" });
});

test.each(["0", "-1", "1.5", "x", "1e3", "1000001"])("%s at once is refused", (typed) => {
  expect(concurrencyFault(typed)).not.toBeNull();
});

test.each(["", " ", "1", " 20 ", "1000000"])("%j at once is taken", (typed) => {
  expect(concurrencyFault(typed)).toBeNull();
});
