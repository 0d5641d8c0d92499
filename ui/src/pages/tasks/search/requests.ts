/** From a filter to what the API takes. */
import type { BulkFilter, TaskQuery } from "@/api/model";
import { type Filter, WINDOWS, type Window } from "@/pages/tasks/search/filter";

const MINUTE_MS = 60_000;

/** Relative times count from a whole minute, so that the same request is sent for a minute. */
export function minuteOf(now: number): number {
  return Math.floor(now / MINUTE_MS);
}

function beginOf(window: Window, minute: number): string {
  return new Date((minute - WINDOWS[window]) * MINUTE_MS).toISOString();
}

export function toTaskQuery(filter: Filter, minute: number): TaskQuery {
  const after = filter.last ? beginOf(filter.last, minute) : filter.after;
  return {
    ...(filter.types.length > 0 && { type: [...filter.types] }),
    ...(filter.prefix && { namePrefix: filter.prefix }),
    ...(filter.statuses.length > 0 && { status: [...filter.statuses] }),
    ...(filter.tags.length > 0 && { tag: filter.tags.map(([key, value]) => `${key}:${value}`) }),
    ...(filter.words.length > 0 && { word: [...filter.words] }),
    ...(filter.payload.length > 0 && { payload: filter.payload.map(([key, value]) => `${key}:${value}`) }),
    ...(filter.idempotency !== null && { idempotencyKey: filter.idempotency }),
    ...(filter.shortIds.length > 0 && { shortId: [...filter.shortIds] }),
    ...(filter.error !== null && { error: filter.error }),
    ...(filter.ids.length > 0 && { id: [...filter.ids] }),
    ...(filter.flow !== null && { flow: filter.flow }),
    ...(filter.worker !== null && { worker: filter.worker }),
    ...(filter.finished !== null && { finished: filter.finished }),
    ...(after && { createdAfter: after }),
    ...(filter.before && { createdBefore: filter.before }),
    ...(filter.ended && { endedAfter: beginOf(filter.ended, minute) }),
  };
}

export function toBulkFilter(filter: Filter, minute: number): BulkFilter {
  const { tag: _, payload: __, id, shortId, word, ...same } = toTaskQuery(filter, minute);
  return {
    ...same,
    ...(filter.tags.length > 0 && { tags: Object.fromEntries(filter.tags) }),
    ...(filter.payload.length > 0 && { payload: Object.fromEntries(filter.payload) }),
    ...(id && { ids: id }),
    ...(shortId && { shortIds: shortId }),
    ...(word && { words: word }),
  };
}
