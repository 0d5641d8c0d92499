/** What pages change. */
import { call, client } from "@/api/client";
import type { BulkAction, BulkDone, BulkFilter, CleanUpQuery, ControlSet } from "@/api/model";

export const retryTask = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/retry", { params: { path: { task_id: id } } }));

export const cancelTask = (id: string) =>
  call(client.POST("/api/tasks/{task_id}/cancel", { params: { path: { task_id: id } } }));

export const deleteTask = (id: string) =>
  call(client.DELETE("/api/tasks/{task_id}", { params: { path: { task_id: id } } }));

/** How many tasks `act` would touch. */
export const countMatching = (action: BulkAction, filter: BulkFilter) => bulk(action, filter, true);

export interface Matching {
  /** Ask no more once so many are done: tasks that fail anew as fast as they are retried would never end. */
  limit?: number;
  onProgress?: (done: number) => void;
}

/** All that match. The server works for a while at a time, so it is asked until nothing is left. */
export async function actOnMatching(action: BulkAction, filter: BulkFilter, given: Matching = {}): Promise<number> {
  const { limit = Number.POSITIVE_INFINITY, onProgress } = given;
  let done = 0;
  for (;;) {
    const part = await bulk(action, filter, false);
    done += part.done;
    onProgress?.(done);
    if (!part.more || done >= limit) return done;
  }
}

const bulk = (action: BulkAction, filter: BulkFilter, dryRun: boolean): Promise<BulkDone> =>
  call(client.POST("/api/tasks/bulk/{action}", { params: { path: { action } }, body: { filter, dryRun } }));

export const cleanUp = (query: CleanUpQuery) => call(client.DELETE("/api/tasks", { params: { query } }));

export const pauseAll = () => call(client.POST("/api/tasks/pause"));

export const resumeAll = () => call(client.POST("/api/tasks/resume"));

/** Starts a second in the whole fleet: 0 is unlimited, null leaves it to the code. */
export const setRateLimit = (tasksPerSecond: number | null) =>
  call(client.POST("/api/tasks/rate-limit", { body: { tasksPerSecond } }));

/** What is left out stays as it is; null clears. */
export const setType = (type: string, body: ControlSet) =>
  call(client.PUT("/api/types/{type}", { params: { path: { type } }, body: body as Required<ControlSet> }));

export const logOut = () => call(client.POST("/api/logout"));
