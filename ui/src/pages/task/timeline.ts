/** What happened to a task and what comes next, newest first: its attempts, with what operators did in between. */
import type { Attempt, AuditEntry, TaskDetail } from "@/api/model";
import { isFinished } from "@/pages/task/state";
import { firstDue } from "@/pages/tasks/ran";
import { lastLine } from "@/text/last-line";

export type AttemptState = "running" | "completed" | "failed" | "lost" | "crashed" | "stopped";

export interface AttemptEvent {
  kind: "attempt";
  key: string;
  /** Null in rows that were edited by hand. */
  number: number | null;
  state: AttemptState;
  worker: string | null;
  started: string | null;
  ended: string | null;
  /** How long the handler ran; null: not known. */
  runMs: number | null;
  error: string | null;
  /** No other follows by itself. */
  final: boolean;
}

export interface OperatorEvent {
  kind: "operator";
  key: string;
  action: string;
  actor: string;
  bulk: boolean;
  /** The mass action that it was a part of. */
  bulkId: string | null;
  /** The task that runs this one again. */
  copy: string | null;
  running: boolean;
  at: string | null;
}

type NextCause = "retry" | "scheduled" | "tasks" | "due";

export type TimelineEvent =
  | AttemptEvent
  | { kind: "next"; key: string; cause: NextCause; number: number; at: string | null }
  | OperatorEvent
  | { kind: "asked"; key: string; at: string }
  /** While it waited: for its first attempt, or for another. */
  | { kind: "cancelled"; key: string; at: string | null; again: boolean }
  /** An attempt that does not count: snoozed until a time, or given back by a worker that stopped. */
  | { kind: "released"; key: string; at: string | null; until: string | null }
  | { kind: "gap"; key: string; count: number }
  | { kind: "submitted"; key: string; at: string; runAfter: string | null };

/** What says the same as the newer one above it: attempts that ended alike, or snoozes. */
export interface SameEvents {
  kind: "same";
  key: string;
  events: TimelineEvent[];
}

const FOLD_FROM = 2; // fewer take no more room than the line that stands for them
const SAME_MOMENT_MS = 5;
const NOTED_WITHIN_MS = 5000; // between what an operator did and its entry in the audit trail

/** An event with the moment by which it is put in order. */
type Placed = [at: number, event: TimelineEvent];

export function timelineOf(task: TaskDetail, audit: readonly AuditEntry[]): TimelineEvent[] {
  const placed: Placed[] = [
    [
      Number.NEGATIVE_INFINITY,
      { kind: "submitted", key: "submitted", at: task.createdAt, runAfter: firstRun(task, audit) },
    ],
    ...attemptsOf(task),
    ...audit.toReversed().map((entry, at) => operatorOf(entry, at, task, audit)),
    ...requestOf(task, audit),
    ...latestOf(task),
  ];
  // Sorting is stable: what has the same time, or none, stays in the order above.
  const ordered = placed.sort(([one], [other]) => one - other || 0).map(([, event]) => event);
  return withOwnKeys(ordered).reverse();
}

/** With neighbours that failed alike folded: the newest is shown, the others stand behind their number. */
export function folded(events: readonly TimelineEvent[]): (TimelineEvent | SameEvents)[] {
  const found: (TimelineEvent | SameEvents)[] = [];
  let at = 0;
  while (at < events.length) {
    const first = events[at] as TimelineEvent;
    let end = at + 1;
    while (end < events.length && isAlike(first, events[end])) end += 1;
    const others = events.slice(at + 1, end);
    found.push(first);
    // Its key is that of the oldest: it stays when one more comes.
    if (others.length >= FOLD_FROM) found.push({ kind: "same", key: `same ${others.at(-1)?.key}`, events: others });
    else found.push(...others);
    at = end;
  }
  return found;
}

function isAlike(one: TimelineEvent, other: TimelineEvent | undefined): boolean {
  if (one.kind === "released") return other?.kind === "released" && one.until !== null && other.until !== null;
  if (one.kind !== "attempt" || other?.kind !== "attempt" || !one.error) return false;
  return one.state === other.state && lastLine(one.error) === lastLine(other.error);
}

/** Rows edited by hand may say the same twice. */
function withOwnKeys(events: TimelineEvent[]): TimelineEvent[] {
  const seen = new Map<string, number>();
  return events.map((event) => {
    const before = seen.get(event.key) ?? 0;
    seen.set(event.key, before + 1);
    return before ? { ...event, key: `${event.key} ${before}` } : event;
  });
}

function attemptsOf(task: TaskDetail): Placed[] {
  const found: Placed[] = [];
  let before: Attempt | undefined;
  let at = Number.NEGATIVE_INFINITY;
  task.history.forEach((entry, index) => {
    const last = index === task.history.length - 1;
    at = timeOf(entry.ended) ?? timeOf(entry.started) ?? at;
    const missing = before ? (entry.attempt ?? 0) - (before.attempt ?? 0) - 1 : 0;
    if (index === 1 && missing > 0 && before?.attempt && entry.attempt) {
      found.push([at, { kind: "gap", key: "gap", count: missing }]);
    }
    before = entry;
    if (typeof entry.snoozed === "number") {
      const until = entry.ended ? afterSeconds(entry.ended, entry.snoozed) : null;
      found.push([at, { kind: "released", key: `snoozed ${entry.ended ?? index}`, at: entry.ended ?? null, until }]);
      return;
    }
    found.push([
      at,
      {
        kind: "attempt",
        key: `attempt ${entry.started ?? index} ${entry.attempt}`,
        number: entry.attempt ?? null,
        state: last && wasStopped(task, entry) ? "stopped" : howFailed(entry),
        worker: entry.worker ?? null,
        started: entry.started ?? null,
        ended: entry.ended ?? null,
        runMs: entry.runMs ?? null,
        error: entry.error ?? null,
        final: last && isFinished(task) && task.status !== "completed",
      },
    ]);
  });
  return found;
}

function howFailed(entry: Attempt): AttemptState {
  if (!entry.lost) return "failed";
  return entry.type === "ChildProcessDied" ? "crashed" : "lost";
}

/** What the row itself says of now, or of the end. */
function latestOf(task: TaskDetail): Placed[] {
  const now = Number.POSITIVE_INFINITY;
  const attempt = {
    kind: "attempt",
    // As in the history, which it will join if it fails: what is open on the page stays open.
    key: `attempt ${task.lastAttemptAt} ${task.attempts}`,
    number: task.attempts,
    worker: task.workerId ?? task.lastWorkerId,
    started: task.lastAttemptAt,
    runMs: task.runMs,
    error: null,
  } as const;
  switch (task.status) {
    case "processing":
      return [[now, { ...attempt, state: "running", ended: null, runMs: null, final: false }]];
    case "completed":
      // What operators do afterwards, such as to run it again, comes after it.
      return [
        [timeOf(task.completedAt) ?? now, { ...attempt, state: "completed", ended: task.completedAt, final: true }],
      ];
    case "cancelled":
      return wasStopped(task, task.history.at(-1))
        ? []
        : [
            [
              (timeOf(task.completedAt) ?? now) + NOTED_WITHIN_MS,
              { kind: "cancelled", key: "cancelled", at: task.completedAt, again: task.history.length > 0 },
            ],
          ];
    case "failed":
      return task.nextRetryAt && !isFinished(task) ? [[now, next(task, "retry", task.nextRetryAt)]] : [];
    case "pending": {
      const scheduled = task.waitingFor.find(({ cause }) => cause === "scheduled");
      return [
        ...releasedOf(task),
        [
          now,
          scheduled ? next(task, "scheduled", scheduled.until) : next(task, task.waits > 0 ? "tasks" : "due", null),
        ],
      ];
    }
    default:
      return [];
  }
}

/** A waiting task whose latest attempt has left no entry in the history was given back. */
function releasedOf(task: TaskDetail): Placed[] {
  const begun = timeOf(task.lastAttemptAt);
  if (begun === null || timeOf(task.history.at(-1)?.started) === begun) return [];
  return [[timeOf(task.updatedAt) ?? begun, { kind: "released", key: "released", at: task.updatedAt, until: null }]];
}

function next(task: TaskDetail, cause: NextCause, at: string | null): TimelineEvent {
  return { kind: "next", key: "next", cause, number: task.attempts + 1, at };
}

function operatorOf(entry: AuditEntry, index: number, task: TaskDetail, audit: readonly AuditEntry[]): Placed {
  const at = timeOf(entry.at);
  const asked = timeOf(task.cancelRequestedAt);
  const event: TimelineEvent = {
    kind: "operator",
    key: `operator ${entry.at ?? index} ${entry.action}`,
    action: entry.action,
    actor: entry.actor,
    bulk: isBulk(entry.detail),
    bulkId: entry.bulkId ?? null,
    copy: copyIn(entry.detail),
    running: entry.action === "cancel" && asked !== null && at !== null && Math.abs(at - asked) < NOTED_WITHIN_MS,
    at: entry.at,
  };
  return [placeOf(entry, at, task, audit) ?? Number.NEGATIVE_INFINITY, event];
}

/** An action is noted when it is done: a quick worker may have begun the attempt that a retry led to, or ended it. */
function placeOf(entry: AuditEntry, at: number | null, task: TaskDetail, audit: readonly AuditEntry[]): number | null {
  if (entry.action !== "retry" || at === null) return at;
  const begun = task.history.find(({ attempt, started }, index) => {
    const before = at - (timeOf(started) ?? Number.NaN);
    if (index === 0 || attempt !== 1 || !(before >= 0 && before < NOTED_WITHIN_MS)) return false;
    const idleSince = timeOf(task.history[index - 1]?.ended) ?? Number.NEGATIVE_INFINITY;
    // Another retry led to it, and this one came after its end.
    return !audit.some((other) => other.action === "retry" && isBetween(timeOf(other.at), idleSince, at));
  });
  return begun ? (timeOf(begun.started) ?? at) - 0.5 : at;
}

function isBetween(at: number | null, from: number, to: number): boolean {
  return at !== null && at >= from && at < to;
}

/** A request to stop that no operator made: code did. */
function requestOf(task: TaskDetail, audit: readonly AuditEntry[]): Placed[] {
  const at = timeOf(task.cancelRequestedAt);
  if (at === null || !task.cancelRequestedAt || audit.some(({ action }) => action === "cancel")) return [];
  return [[at, { kind: "asked", key: "asked", at: task.cancelRequestedAt }]];
}

/** Stopped while it ran, and not cancelled while it waited: then its last attempt ended with the task. */
function wasStopped(task: TaskDetail, last: Attempt | undefined): boolean {
  const [ended, over] = [timeOf(last?.ended), timeOf(task.completedAt)];
  if (task.status !== "cancelled" || ended === null || over === null) return false;
  return task.cancelRequestedAt !== null || Math.abs(ended - over) <= SAME_MOMENT_MS;
}

/** An operator may have moved the time at which a task is due: only else is it what was asked for at first. */
function firstRun(task: TaskDetail, audit: readonly AuditEntry[]): string | null {
  return audit.some(({ action }) => action === "retry" || action === "run-now") ? null : firstDue(task);
}

function isBulk(detail: unknown): boolean {
  return typeof detail === "object" && detail !== null && "bulk" in detail && detail.bulk === true;
}

function copyIn(detail: unknown): string | null {
  if (typeof detail !== "object" || detail === null || !("copy" in detail)) return null;
  return typeof detail.copy === "string" ? detail.copy : null;
}

function afterSeconds(text: string, seconds: number): string | null {
  const at = new Date((timeOf(text) ?? Number.NaN) + seconds * 1000);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

function timeOf(text: string | null | undefined): number | null {
  const at = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : at;
}
