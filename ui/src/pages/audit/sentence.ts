/** What somebody did, in a few words. */
import { ExactNumber, stringify } from "@/api/exact";
import type { AuditEntry } from "@/api/model";
import { plural } from "@/text/number";
import { duration } from "@/text/time";

/** Actions that people look for, as they are called. */
export const ACTIONS: Record<string, string> = {
  pause: "Pause all",
  resume: "Resume all",
  "rate-limit": "Rate limit of all",
  "set-type": "Pause or limits of a type",
  retry: "Retry",
  cancel: "Cancel",
  delete: "Delete",
  "run-now": "Run now",
  revive: "Revive",
  copy: "Run again",
  submit: "New task",
  "submit-flow": "New flow",
  "bulk-retry": "Retry of many",
  "bulk-cancel": "Cancel of many",
  "bulk-delete": "Delete of many",
  "bulk-revive": "Revive of many",
  "bulk-run-now": "Run now of many",
  cleanup: "Clean-up",
  drain: "Drain a worker",
  "schedule-set": "Schedule made or changed",
  "schedule-pause": "Schedule paused",
  "schedule-resume": "Schedule resumed",
  "schedule-clear": "Schedule as in the code",
  "schedule-trigger": "Schedule run now",
  "schedule-delete": "Schedule deleted",
  "token-create": "New token",
  "token-revoke": "Token revoked",
};

/** What was done, to how many. */
const ON_TASKS: Record<string, (what: string) => string> = {
  retry: (what) => `retried ${what}`,
  cancel: (what) => `cancelled ${what}`,
  delete: (what) => `deleted ${what}`,
  "run-now": (what) => `let ${what} run now`,
  revive: (what) => `revived ${what}`,
  copy: (what) => `ran ${what} again`,
  submit: (what) => `submitted ${what}`,
};

const ON_SCHEDULES: Record<string, string> = {
  "schedule-set": "set a schedule",
  "schedule-pause": "paused a schedule",
  "schedule-resume": "resumed a schedule",
  "schedule-clear": "took back the edit of a schedule",
  "schedule-trigger": "ran a schedule now",
  "schedule-delete": "deleted a schedule",
};

const CONTROLS = ["pause", "resume", "rate-limit", "set-type", "limit"];

export function sentence(entry: AuditEntry): string {
  const { action, type } = entry;
  const detail = fieldsOf(entry.detail);
  const many = action.startsWith("bulk-") ? ON_TASKS[action.slice("bulk-".length)] : undefined;
  if (many) return many(plural(entry.done ?? 0, "task"));
  const one = ON_TASKS[action];
  if (one) return one("a task");
  switch (action) {
    case "pause":
    case "resume":
      return `${action}d ${type ? "the type" : "all task types"}`;
    case "rate-limit":
      return "limited all task types";
    case "set-type":
      if (!isOnlyPause(detail)) return "changed the type";
      return detail["paused"] === true ? "paused the type" : "resumed the type";
    case "limit":
      return type ? "limited the type" : "limited all task types";
    case "submit-flow":
      return "submitted a flow";
    case "cleanup":
      return `cleaned up ${plural(entry.done ?? 0, "task")}`;
    case "drain":
      return "asked a worker to drain";
    case "token-create":
      return "made a token";
    case "token-revoke":
      return "revoked a token";
    default:
      return ON_SCHEDULES[action] ?? action;
  }
}

/** What else is known of it: the filter of a mass action, the worker, the token. */
export function particulars(entry: AuditEntry): string {
  const { filter, bulk: _, copy: __, edited, done: ___, deleted: ____, ...rest } = fieldsOf(entry.detail);
  if (CONTROLS.includes(entry.action)) return isOnlyPause(rest) ? "" : settings(rest).join(" · ");
  const words = Object.entries({ ...fieldsOf(filter), ...rest }).map(
    ([name, value]) => `${name}: ${name === "every" ? duration(Number(value) * 1000) : written(value)}`,
  );
  if (edited === true) words.push("with other arguments");
  if (entry.action.startsWith("bulk-") && words.length === 0) return "without a filter: the whole queue";
  return words.join(" · ");
}

/** What was set of a type, or of all, by the names that pages give it. Code and command line call it differently. */
const SETTINGS: Record<string, string> = {
  paused: "paused",
  rateLimit: "rate limit",
  operator_rate: "rate limit",
  tasksPerSecond: "rate limit",
  concurrency: "at once",
};

function settings(detail: Record<string, unknown>): string[] {
  return Object.entries(detail).flatMap(([name, value]) => {
    const label = SETTINGS[name];
    if (!label) return [];
    if (label === "rate limit") return `${label}: ${rate(value)}`;
    return `${label}: ${value === null ? "no limit" : value === true ? "yes" : value === false ? "no" : written(value)}`;
  });
}

function isOnlyPause(detail: Record<string, unknown>): boolean {
  return Object.keys(detail).every((name) => name === "paused");
}

function rate(value: unknown): string {
  return value === null ? "what the code says" : Number(value) === 0 ? "none" : `${Number(value)} a second`;
}

function written(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.map(written).join(", ");
  const fields = Object.entries(fieldsOf(value));
  return fields.length > 0 ? fields.map(([name, each]) => `${name}=${written(each)}`).join(", ") : stringify(value, 0);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber)
    ? { ...value }
    : {};
}
