/** What somebody did, in a few words. */
import { stringify } from "@/api/exact";
import type { AuditEntry } from "@/api/model";
import { plural } from "@/text/number";

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
  "bulk-retry": "Retry of many",
  "bulk-cancel": "Cancel of many",
  "bulk-delete": "Delete of many",
  "bulk-revive": "Revive of many",
  cleanup: "Clean-up",
  drain: "Drain a worker",
  "token-create": "New token",
  "token-revoke": "Token revoked",
};

const ON_TASKS: Record<string, string> = {
  retry: "retried",
  cancel: "cancelled",
  delete: "deleted",
  "run-now": "let run now",
  revive: "revived",
  copy: "ran again",
  submit: "submitted",
};

const CONTROLS = ["pause", "resume", "rate-limit", "set-type", "limit"];

export function sentence(entry: AuditEntry): string {
  const { action, type } = entry;
  const detail = fieldsOf(entry.detail);
  const many = action.startsWith("bulk-") ? ON_TASKS[action.slice("bulk-".length)] : undefined;
  if (many) return `${many} ${plural(entry.done ?? 0, "task")}`;
  if (action === "copy") return "ran a task again";
  if (action in ON_TASKS) return `${ON_TASKS[action]} a task`;
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
    case "cleanup":
      return `cleaned up ${plural(entry.done ?? 0, "task")}`;
    case "drain":
      return "asked a worker to drain";
    case "token-create":
      return "made a token";
    case "token-revoke":
      return "revoked a token";
    default:
      return action;
  }
}

/** What else is known of it: the filter of a mass action, the worker, the token. */
export function particulars(entry: AuditEntry): string {
  const { filter, bulk: _, copy: __, edited, done: ___, deleted: ____, ...rest } = fieldsOf(entry.detail);
  if (CONTROLS.includes(entry.action)) return isOnlyPause(rest) ? "" : settings(rest).join(" · ");
  const words = Object.entries({ ...fieldsOf(filter), ...rest }).map(([name, value]) => `${name}: ${written(value)}`);
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
  return Array.isArray(value) ? value.map(written).join(", ") : stringify(value, 0);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
