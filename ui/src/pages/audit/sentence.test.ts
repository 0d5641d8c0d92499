import { expect, it } from "vitest";
import { ExactNumber } from "@/api/exact";
import type { AuditEntry } from "@/api/model";
import { particulars, sentence } from "@/pages/audit/sentence";

function entry(given: Partial<AuditEntry>): AuditEntry {
  return {
    at: null,
    actor: "ada",
    action: "",
    taskId: null,
    type: null,
    detail: {},
    bulkId: null,
    done: null,
    ...given,
  };
}

it("says what was done in words", () => {
  expect(sentence(entry({ action: "pause" }))).toBe("paused all task types");
  expect(sentence(entry({ action: "pause", type: "mail" }))).toBe("paused the type");
  expect(sentence(entry({ action: "set-type", type: "mail", detail: { paused: true } }))).toBe("paused the type");
  const schedule = entry({ action: "schedule-set", detail: { schedule: "nightly" } });
  expect([sentence(schedule), particulars(schedule)]).toEqual(["set a schedule", "schedule: nightly"]);
  const every = entry({ action: "schedule-set", detail: { schedule: "stock", every: new ExactNumber("900.0") } });
  expect(particulars(every)).toBe("schedule: stock · every: 15m");
  expect(sentence(entry({ action: "bulk-run-now", done: 2 }))).toBe("let 2 tasks run now");
  expect(sentence(entry({ action: "run-now" }))).toBe("let a task run now");
  expect(sentence(entry({ action: "copy" }))).toBe("ran a task again");
  expect(sentence(entry({ action: "bulk-retry", done: 1 }))).toBe("retried 1 task");
  const limits = entry({
    action: "set-type",
    detail: { paused: false, rateLimit: new ExactNumber("5.0"), concurrency: null },
  });
  expect([sentence(limits), particulars(limits)]).toEqual([
    "changed the type",
    "paused: no · rate limit: 5 a second · at once: no limit",
  ]);
  const all = entry({ action: "rate-limit", detail: { tasksPerSecond: null } });
  expect([sentence(all), particulars(all)]).toEqual(["limited all task types", "rate limit: what the code says"]);
  expect(sentence(entry({ action: "cleanup", done: 1200 }))).toBe("cleaned up 1,200 tasks");
  expect(sentence(entry({ action: "something new" }))).toBe("something new");
});

it("tells a mass action with its count and its filter", () => {
  const many = entry({
    action: "bulk-cancel",
    done: 278,
    detail: { filter: { type: ["mail"], status: ["pending", "failed"], error: "no funds" }, done: 200 },
  });
  expect(sentence(many)).toBe("cancelled 278 tasks");
  expect(particulars(many)).toBe("type: mail · status: pending, failed · error: no funds");
  const tagged = { tags: { campaign: "spring", customer: new ExactNumber("18446744073709551617") }, payload: {} };
  expect(particulars(entry({ action: "bulk-cancel", detail: { filter: tagged } }))).toBe(
    "tags: campaign=spring, customer=18446744073709551617 · payload: {}",
  );
  expect(particulars(entry({ action: "bulk-delete", detail: { filter: {} } }))).toContain("the whole queue");
  expect(particulars(entry({ action: "copy", detail: { copy: "x", edited: true } }))).toBe("with other arguments");
  expect(particulars(entry({ action: "drain", detail: { worker: "w" } }))).toBe("worker: w");
});
