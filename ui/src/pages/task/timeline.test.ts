import { expect, it } from "vitest";
import type { Attempt, AuditEntry, TaskDetail } from "@/api/model";
import { folded, type TimelineEvent, timelineOf } from "@/pages/task/timeline";

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 12, 0, seconds)).toISOString();

function task(given: Partial<TaskDetail>): TaskDetail {
  return {
    id: "x",
    type: "work",
    payload: {},
    status: "pending",
    attempts: 0,
    maxAttempts: 3,
    lastAttemptAt: null,
    nextRetryAt: null,
    result: null,
    error: null,
    runAfter: null,
    createdAt: at(0),
    updatedAt: at(0),
    completedAt: null,
    workerId: null,
    lastWorkerId: null,
    runMs: null,
    lockedUntil: null,
    timeoutSeconds: null,
    priority: 0,
    tags: {},
    cancelRequestedAt: null,
    version: 0,
    idempotencyKey: null,
    uniqueKey: null,
    copyOf: null,
    waits: 0,
    after: null,
    flowId: null,
    history: [],
    waitingFor: [],
    parents: { tasks: [], total: 0, unfinished: 0 },
    feeds: { tasks: [], total: 0, unfinished: 0 },
    ...given,
  };
}

function failure(attempt: number, second: number, more: Partial<Attempt> = {}): Attempt {
  return { attempt, worker: "w", started: at(second), ended: at(second + 1), error: "boom", lost: false, ...more };
}

function deed(action: string, second: number, detail: unknown = {}): AuditEntry {
  return { at: at(second), actor: "ada", action, taskId: "x", type: "work", detail, bulkId: null, done: null };
}

/** Each event in a word or two, newest first. */
function told(given: Partial<TaskDetail>, audit: AuditEntry[] = []): string[] {
  return timelineOf(task(given), audit).map(word);
}

function word(event: TimelineEvent): string {
  switch (event.kind) {
    case "attempt":
      return `${event.state} ${event.number}${event.final ? " final" : ""}`;
    case "next":
      return `next ${event.number} ${event.cause}`;
    case "operator":
      return `${event.actor} ${event.action}${event.running ? " running" : ""}${event.bulk ? " bulk" : ""}`;
    case "released":
      return event.until ? `snoozed ${event.at} ${event.until}` : `given back ${event.at}`;
    case "gap":
      return `gap ${event.count}`;
    case "cancelled":
      return event.again ? "cancelled again" : "cancelled";
    default:
      return event.kind;
  }
}

it("tells of a task that waits", () => {
  expect(told({})).toEqual(["next 1 due", "submitted"]);
  const waitingFor = [{ cause: "scheduled" as const, text: "", until: at(60) }];
  expect(told({ waitingFor, runAfter: at(60) })).toEqual(["next 1 scheduled", "submitted"]);
});

it("tells of attempts, the running one last", () => {
  const given = { status: "processing", attempts: 2, lastAttemptAt: at(5), workerId: "w", history: [failure(1, 1)] };
  expect(told(given)).toEqual(["running 2", "failed 1", "submitted"]);
});

it("tells of the retry to come", () => {
  const given = { status: "failed", attempts: 1, nextRetryAt: at(30), history: [failure(1, 1, { lost: true })] };
  expect(told(given)).toEqual(["next 2 retry", "lost 1", "submitted"]);
});

it("tells how it ended", () => {
  const history = [failure(1, 1), failure(2, 3)];
  expect(told({ status: "completed", attempts: 3, lastAttemptAt: at(8), completedAt: at(9), history })).toEqual([
    "completed 3 final",
    "failed 2",
    "failed 1",
    "submitted",
  ]);
  expect(told({ status: "failed", attempts: 2, completedAt: at(4), history })).toEqual([
    "failed 2 final",
    "failed 1",
    "submitted",
  ]);
});

it("knows whether a cancelled task ran at that time", () => {
  expect(told({ status: "cancelled", completedAt: at(9) })).toEqual(["cancelled", "submitted"]);
  expect(told({ status: "cancelled", completedAt: at(9), history: [failure(1, 1)] })[0]).toBe("cancelled again");
  const stopped = { status: "cancelled", completedAt: at(9), history: [failure(1, 8)] };
  expect(told(stopped)).toEqual(["stopped 1 final", "submitted"]);
  expect(told({ ...stopped, cancelRequestedAt: at(8) })).toEqual(["stopped 1 final", "asked", "submitted"]);
});

it("tells a child process that died from a worker that was lost", () => {
  const error = "ChildProcessDied: the process that ran this task ended with signal 9";
  const history = [
    failure(1, 1, { lost: true, type: "ChildProcessDied", error }),
    failure(2, 3, { lost: true, error: "WorkerLost: worker w" }),
  ];
  expect(told({ status: "failed", attempts: 2, completedAt: at(4), history })).toEqual([
    "lost 2 final",
    "crashed 1",
    "submitted",
  ]);
});

it("tells of a snooze, and of an attempt that was given back", () => {
  const pending = { status: "pending", lastAttemptAt: at(1), updatedAt: at(2) };
  const waitingFor: TaskDetail["waitingFor"] = [{ cause: "scheduled", text: "", until: at(60) }];
  const history = [{ attempt: 1, worker: "w", started: at(1), ended: at(2), snoozed: 58, lost: false }];
  const snoozed = timelineOf(task({ ...pending, runAfter: at(60), waitingFor, history }), []);
  expect(snoozed.map(word)).toEqual(["next 1 scheduled", `snoozed ${at(2)} ${at(60)}`, "submitted"]);
  const gone = { status: "completed", attempts: 1, lastAttemptAt: at(61), completedAt: at(62), runAfter: at(60) };
  const later = timelineOf(task({ ...gone, history: [0, 1, 2].map(() => history[0] as Attempt) }), []);
  expect(later.map(word)[0]).toBe("completed 1 final");
  expect(folded(later).map(({ kind }) => kind)).toEqual(["attempt", "released", "same", "submitted"]);
  expect(snoozed.at(-1)).toMatchObject({ runAfter: null });
  expect(told(pending)).toEqual(["next 1 due", `given back ${at(2)}`, "submitted"]);
  const retried = { ...pending, runAfter: at(3), updatedAt: at(3), history: [failure(1, 1)] };
  expect(told(retried, [deed("retry", 3)])).toEqual(["next 1 due", "ada retry", "failed 1", "submitted"]);
});

it("folds neighbours that say the same, and keeps what is open when one more comes", () => {
  const history = Array.from({ length: 5 }, (_, index) => failure(index + 1, 2 * index));
  const many = (attempts: number) =>
    folded(
      timelineOf(task({ status: "failed", attempts, nextRetryAt: at(90), history: history.slice(0, attempts) }), []),
    );
  const words = many(5).map((each) => (each.kind === "same" ? `${each.events.length} more` : word(each)));
  expect(words).toEqual(["next 6 retry", "failed 5", "4 more", "submitted"]);
  expect(many(5)[2]?.key).toBe(many(4)[2]?.key);
  expect(many(2).map(({ kind }) => kind)).toEqual(["next", "attempt", "attempt", "submitted"]);
  const other = [...history.slice(0, 4), failure(5, 8, { error: "another" })];
  const mixed = folded(timelineOf(task({ status: "failed", attempts: 5, nextRetryAt: at(90), history: other }), []));
  expect(mixed.map(({ kind }) => kind)).toEqual(["next", "attempt", "attempt", "same", "submitted"]);
});

it("weaves in what operators did", () => {
  const given = { attempts: 0, history: [failure(1, 1), failure(2, 5)] };
  expect(told(given, [deed("retry", 10, { bulk: true }), deed("retry", 3)])).toEqual([
    "next 1 due",
    "ada retry bulk",
    "failed 2",
    "ada retry",
    "failed 1",
    "submitted",
  ]);
});

it("puts a retry before the attempt that it led to, though it was noted later", () => {
  const history = [failure(1, 1), failure(1, 5)];
  expect(told({ status: "failed", attempts: 1, completedAt: at(6), history }, [deed("retry", 7)])).toEqual([
    "failed 1 final",
    "ada retry",
    "failed 1",
    "submitted",
  ]);
});

it("does not take a later retry for the cause of the attempt that failed before it", () => {
  const history = [failure(1, 1)];
  expect(told({ attempts: 0, history }, [deed("retry", 3)])).toEqual([
    "next 1 due",
    "ada retry",
    "failed 1",
    "submitted",
  ]);
});

it("does not take a retry for the cause of what began before it by itself, or by another retry", () => {
  const bySelf = { attempts: 0, history: [failure(1, 1), failure(2, 5)] };
  expect(told(bySelf, [deed("retry", 7)]).slice(0, 3)).toEqual(["next 1 due", "ada retry", "failed 2"]);
  const byAnother = { attempts: 0, history: [failure(1, 1), failure(1, 5)] };
  expect(told(byAnother, [deed("retry", 7), deed("retry", 4)])).toEqual([
    "next 1 due",
    "ada retry",
    "failed 1",
    "ada retry",
    "failed 1",
    "submitted",
  ]);
});

it("says once that it was asked to stop, and by whom if that is known", () => {
  const running = { status: "processing", attempts: 1, lastAttemptAt: at(1), cancelRequestedAt: at(5) };
  expect(told(running)).toEqual(["running 1", "asked", "submitted"]);
  expect(told(running, [deed("cancel", 5)])).toEqual(["running 1", "ada cancel running", "submitted"]);
});

it("says where attempts are missing", () => {
  const history = [failure(1, 1), failure(52, 10), failure(53, 12)];
  expect(told({ status: "failed", attempts: 53, nextRetryAt: at(60), history })).toEqual([
    "next 54 retry",
    "failed 53",
    "failed 52",
    "gap 50",
    "failed 1",
    "submitted",
  ]);
});

it("lives with rows that were edited by hand", () => {
  const history = [{ lost: false }, failure(2, 3, { started: "nonsense", ended: null })];
  expect(told({ status: "unheard of", history })).toEqual(["failed 2", "failed null", "submitted"]);
});

it("keeps the key of an attempt when it ends: what is open on the page stays open", () => {
  const running = timelineOf(task({ status: "processing", attempts: 1, lastAttemptAt: at(1) }), []);
  const failed = timelineOf(task({ status: "failed", attempts: 1, completedAt: at(2), history: [failure(1, 1)] }), []);
  expect(failed[0]?.key).toBe(running[0]?.key);
});

it("has no key twice", () => {
  const history = [failure(1, 1), failure(1, 1)];
  const keys = timelineOf(task({ history }), [deed("retry", 3), deed("retry", 3)]).map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
});
