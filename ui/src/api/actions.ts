/** What pages change. */
import { call, client } from "@/api/client";
import { stringify } from "@/api/exact";
import type {
  BulkAction,
  BulkDone,
  BulkFilter,
  CleanUpQuery,
  ControlSet,
  ScheduleSet,
  SubmitOptions,
} from "@/api/model";

export const retryTask = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/retry", { params: { path: { task_id: id } } }));

export const cancelTask = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/cancel", { params: { path: { task_id: id } } }));

/** A task that waits for its time, or for its retry. */
export const runTaskNow = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/run-now", { params: { path: { task_id: id } } }));

export const reviveTask = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/revive", { params: { path: { task_id: id } } }));

/** The task that runs it again. Without a payload it has the same. */
export const copyTask = (id: string, changed: { payload?: unknown }) =>
  call(
    client.POST("/api/tasks/{task_id}/copy", {
      params: { path: { task_id: id } },
      body: changed,
      bodySerializer: exact,
    }),
  );

export const submitTask = (body: { type: string; payload: unknown; options: SubmitOptions }) =>
  call(client.POST("/api/tasks", { body, bodySerializer: exact }));

/** Numbers that somebody wrote go out to the digit. */
const exact = (body: unknown): string => stringify(body, 0);

export const drainWorker = (id: string) =>
  call(client.POST("/api/workers/{worker}/drain", { params: { path: { worker: id } } }));

export const deleteTask = (id: string) =>
  call(client.DELETE("/api/tasks/{task_id}", { params: { path: { task_id: id } } }));

/** How many tasks `act` would touch. */
export const countMatching = (action: BulkAction, filter: BulkFilter) => bulk(action, filter, true);

/**
 * All that match. The server works for a while at a time, and is asked to go on from there until it is through: each task
 * has its turn once, also those that fail anew as fast as they are retried.
 */
export async function actOnMatching(
  action: BulkAction,
  filter: BulkFilter,
  onProgress?: (done: number) => void,
): Promise<number> {
  let done = 0;
  let cursor: string | null = null;
  let bulkId: string | null = null;
  do {
    const part: BulkDone = await bulk(action, filter, false, cursor, bulkId);
    done += part.done;
    cursor = part.nextCursor;
    bulkId = part.bulkId;
    onProgress?.(done);
  } while (cursor !== null);
  return done;
}

const bulk = (
  action: BulkAction,
  filter: BulkFilter,
  dryRun: boolean,
  cursor: string | null = null,
  bulkId: string | null = null,
): Promise<BulkDone> =>
  call(
    client.POST("/api/tasks/bulk/{action}", { params: { path: { action } }, body: { filter, dryRun, cursor, bulkId } }),
  );

export const cleanUp = (query: CleanUpQuery) => call(client.DELETE("/api/tasks", { params: { query } }));

export const pauseAll = () => call(client.POST("/api/tasks/pause"));

export const resumeAll = () => call(client.POST("/api/tasks/resume"));

/** Starts a second in the whole fleet: 0 is unlimited, null leaves it to the code. */
export const setRateLimit = (tasksPerSecond: number | null) =>
  call(client.POST("/api/tasks/rate-limit", { body: { tasksPerSecond } }));

/** What is left out stays as it is; null clears. */
export const setType = (type: string, body: ControlSet) =>
  call(client.PUT("/api/types/{type}", { params: { path: { type } }, body: body as Required<ControlSet> }));

const named = (name: string) => ({ params: { path: { name } } });

export const pauseSchedule = (name: string) => call(client.POST("/api/schedules/{name}/pause", named(name)));

export const resumeSchedule = (name: string) => call(client.POST("/api/schedules/{name}/resume", named(name)));

export const triggerSchedule = (name: string) => call(client.POST("/api/schedules/{name}/trigger", named(name)));

/** What the code says holds again. */
export const clearSchedule = (name: string) => call(client.POST("/api/schedules/{name}/clear", named(name)));

export const deleteSchedule = (name: string) => call(client.DELETE("/api/schedules/{name}", named(name)));

/** Its times; what it submits stays. */
export const setSchedule = (name: string, body: ScheduleSet) =>
  call(client.PUT("/api/schedules/{name}", { ...named(name), body: body as Required<ScheduleSet> }));

export const logOut = () => call(client.POST("/api/logout"));
