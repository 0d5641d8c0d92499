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

export function sentence(entry: AuditEntry): string {
  const { action, type } = entry;
  const detail = fieldsOf(entry.detail);
  const many = action.startsWith("bulk-") ? ON_TASKS[action.slice("bulk-".length)] : undefined;
  if (many) return `${many} ${plural(entry.done ?? 0, "task")}`;
  if (action in ON_TASKS) return `${ON_TASKS[action]} a task`;
  switch (action) {
    case "pause":
    case "resume":
      return `${action}d ${type ? "a type" : "all task types"}`;
    case "rate-limit":
      return `set the rate limit of all types to ${rate(detail["tasksPerSecond"])}`;
    case "set-type":
    case "limit":
      return settings(detail);
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
  const told = entry.action === "set-type" || entry.action === "rate-limit" || entry.action === "limit" ? {} : rest;
  const words = Object.entries({ ...fieldsOf(filter), ...told }).map(([name, value]) => `${name}: ${written(value)}`);
  if (edited === true) words.push("with other arguments");
  if (entry.action.startsWith("bulk-") && words.length === 0) return "without a filter: the whole queue";
  return words.join(" · ");
}

function settings(detail: Record<string, unknown>): string {
  const parts: string[] = [];
  if ("paused" in detail) parts.push(detail["paused"] === true ? "paused a type" : "resumed a type");
  const given = detail["rateLimit"] ?? detail["operator_rate"];
  if (given !== undefined) parts.push(`set its rate limit to ${rate(given)}`);
  if ("concurrency" in detail)
    parts.push(`set how many run at once to ${written(detail["concurrency"] ?? "no limit")}`);
  return parts.join(", ") || "changed a type";
}

function rate(value: unknown): string {
  return value === null || value === undefined ? "what the code says" : `${written(value)} a second`;
}

function written(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map(written).join(", ") : stringify(value, 0);
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
