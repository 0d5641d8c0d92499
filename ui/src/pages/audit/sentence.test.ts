import { expect, it } from "vitest";
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
  expect(sentence(entry({ action: "pause", type: "mail" }))).toBe("paused a type");
  expect(sentence(entry({ action: "set-type", type: "mail", detail: { paused: true } }))).toBe("paused a type");
  expect(sentence(entry({ action: "set-type", detail: { rateLimit: 5, concurrency: null } }))).toBe(
    "set its rate limit to 5 a second, set how many run at once to no limit",
  );
  expect(sentence(entry({ action: "rate-limit", detail: { tasksPerSecond: null } }))).toContain("what the code says");
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
  expect(particulars(entry({ action: "bulk-delete", detail: { filter: {} } }))).toContain("the whole queue");
  expect(particulars(entry({ action: "copy", detail: { copy: "x", edited: true } }))).toBe("with other arguments");
  expect(particulars(entry({ action: "drain", detail: { worker: "w" } }))).toBe("worker: w");
});
