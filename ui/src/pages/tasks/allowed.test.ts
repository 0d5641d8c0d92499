import { expect, it } from "vitest";
import type { BulkAction, Task } from "@/api/model";
import { commonObstacle, obstacle } from "@/pages/tasks/allowed";
import { looksSame } from "@/pages/tasks/looks-same";
import { newerThan } from "@/pages/tasks/newer";
import { firstDue, latestRun } from "@/pages/tasks/ran";
import { rangeOf } from "@/pages/tasks/range";

function task(given: Partial<Task>): Task {
  const none = { completedAt: null, cancelRequestedAt: null, runAfter: null, after: null };
  return { id: "1", version: 1, ...none, history: [], ...given } as Task;
}

const OVER = "2030-01-01T00:01:00Z";
const CUT = { on: "success", parents: ["2"], inputs: {}, delay: null, runAt: null, cutBy: "2" };

it.each<[string, Task, BulkAction[]]>([
  ["pending", task({ status: "pending" }), ["cancel"]],
  ["scheduled", task({ status: "pending", runAfter: OVER }), ["cancel", "run-now"]],
  ["processing", task({ status: "processing" }), ["cancel"]],
  ["asked to stop", task({ status: "processing", cancelRequestedAt: OVER }), []],
  ["waiting for its retry", task({ status: "failed" }), ["retry", "cancel", "run-now"]],
  ["failed", task({ status: "failed", completedAt: OVER }), ["retry", "delete"]],
  ["completed", task({ status: "completed", completedAt: OVER }), ["delete"]],
  ["cancelled", task({ status: "cancelled", completedAt: OVER }), ["delete", "revive"]],
  ["cut off", task({ status: "cancelled", completedAt: OVER, after: CUT }), ["delete"]],
])("a task that is %s", (_, given, allowed) => {
  const all: BulkAction[] = ["retry", "cancel", "delete", "revive", "run-now"];
  expect(all.filter((action) => obstacle(action, given) === null)).toEqual(allowed);
});

it("allows for several what is allowed for one of them", () => {
  const several = [task({ status: "pending" }), task({ status: "completed", completedAt: OVER })];
  expect(commonObstacle("cancel", several)).toBeNull();
  expect(commonObstacle("delete", several)).toBeNull();
  expect(commonObstacle("retry", several)).toContain("None of them has failed");
});

it("measures the latest attempt, not the time since", () => {
  const started = "2030-01-01T00:00:00Z";
  const history = [{ attempt: 1, worker: "w", started, ended: "2030-01-01T00:00:05Z", error: "x", lost: false }];
  expect(latestRun(task({ status: "pending", lastAttemptAt: started }))).toBeNull();
  expect(latestRun(task({ status: "cancelled", lastAttemptAt: null, completedAt: OVER }))).toBeNull();
  expect(latestRun(task({ status: "processing", lastAttemptAt: started }))).toEqual({ from: started, to: null });
  expect(latestRun(task({ status: "completed", lastAttemptAt: started, completedAt: OVER, history }))?.to).toBe(OVER);
  const cancelledLater = task({ status: "cancelled", lastAttemptAt: started, completedAt: OVER, history });
  expect(latestRun(cancelledLater)?.to).toBe("2030-01-01T00:00:05Z");
});

it("does not take the time of a retry or a snooze for the one that was asked for at first", () => {
  const started = "2030-01-01T00:00:10Z";
  const [before, after] = ["2030-01-01T00:00:00Z", "2030-01-01T00:05:00Z"];
  const history = [{ attempt: 1, worker: "w", started, ended: started, error: "x", lost: false }];
  expect(firstDue(task({ runAfter: null, lastAttemptAt: null }))).toBeNull();
  expect(firstDue(task({ runAfter: after, lastAttemptAt: null }))).toBe(after);
  expect(firstDue(task({ runAfter: before, lastAttemptAt: started }))).toBe(before);
  expect(firstDue(task({ runAfter: after, lastAttemptAt: started }))).toBeNull();
  expect(firstDue(task({ runAfter: after, lastAttemptAt: "2030-01-01T00:06:00Z", history }))).toBeNull();
});

it("draws a row anew when something that it shows has changed", () => {
  const had = task({ status: "pending", updatedAt: OVER });
  expect(looksSame(had, { ...had })).toBe(true);
  expect(looksSame(had, { ...had, version: 2 })).toBe(false);
  expect(looksSame(had, { ...had, cancelRequestedAt: OVER })).toBe(false);
});

it("counts what is newer, and says when it may be more", () => {
  const tasks = [{ id: "3" }, { id: "2" }, { id: "1" }];
  expect(newerThan(undefined, tasks, 3)).toEqual({ count: 0, atLeast: false });
  expect(newerThan("1", tasks, 3)).toEqual({ count: 2, atLeast: false });
  expect(newerThan("0", tasks, 3)).toEqual({ count: 3, atLeast: true });
});

it("says where in the list a page is", () => {
  expect(rangeOf(50, 50, { total: 120, totalCapped: false })).toBe("51–100 of 120, newest first");
  expect(rangeOf(null, 20, { total: 10_000, totalCapped: true })).toBe("20 of 10,000+, newest first");
  expect(rangeOf(null, 20, { total: 3, totalCapped: true })).toBe("20 of 20+, newest first");
  expect(rangeOf(0, 20, { total: 30, totalCapped: false }, "ended")).toBe("1–20 of 30, latest end first");
  expect(rangeOf(0, 20, { total: 30, totalCapped: false }, "duration")).toBe("The longest 20 of 30");
  const some = "The longest 50 of the newest 10,000 that match";
  expect(rangeOf(0, 50, { total: 10_000, totalCapped: true }, "duration")).toBe(some);
});
