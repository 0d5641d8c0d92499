/** What pages read. A key starts with its subject; `live` ones are read again when the server says that figures moved. */
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { call, client } from "@/api/client";
import { learnServerTime } from "@/api/clock";
import type { AuditQuery, ScheduleTimes, SeriesQuery, TaskQuery } from "@/api/model";

const live = { live: true };

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => call(client.GET("/api/session")),
  staleTime: Number.POSITIVE_INFINITY,
});

export const aboutQuery = queryOptions({
  queryKey: ["about"],
  queryFn: async () => {
    const asked = Date.now();
    const about = await call(client.GET("/api/about"));
    learnServerTime(about.serverTime, asked);
    return about;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

export const statsQuery = queryOptions({
  queryKey: ["stats"],
  queryFn: ({ signal }) => call(client.GET("/api/tasks/stats", { signal })),
  meta: live,
});

export const controlsQuery = queryOptions({
  queryKey: ["controls"],
  queryFn: ({ signal }) => call(client.GET("/api/controls", { signal })),
});

export const typesQuery = queryOptions({
  queryKey: ["types"],
  queryFn: ({ signal }) => call(client.GET("/api/types", { signal })),
  meta: live,
});

export function workersQuery(query: { all?: boolean } = {}) {
  return queryOptions({
    queryKey: ["workers", query],
    queryFn: ({ signal }) => call(client.GET("/api/workers", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    meta: live,
  });
}

export function tasksQuery(query: TaskQuery) {
  return queryOptions({
    queryKey: ["tasks", query],
    queryFn: ({ signal }) => call(client.GET("/api/tasks", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    meta: live,
  });
}

export function taskQuery(id: string) {
  return queryOptions({
    queryKey: ["task", id],
    queryFn: ({ signal }) => call(client.GET("/api/tasks/{task_id}", { params: { path: { task_id: id } }, signal })),
    meta: live,
  });
}

export function seriesQuery(query: SeriesQuery) {
  return queryOptions({
    queryKey: ["series", query],
    queryFn: ({ signal }) => call(client.GET("/api/series", { params: { query }, signal })),
    placeholderData: keepPreviousData, // not `live`: charts of steps of minutes are read every few seconds (hooks/live.ts)
  });
}

export function typeQuery(type: string) {
  return queryOptions({
    queryKey: ["types", type],
    queryFn: ({ signal }) => call(client.GET("/api/types/{type}", { params: { path: { type } }, signal })),
    meta: live,
  });
}

/** Not `live`: a thousand failures are looked at for it. */
export function failuresQuery(type: string) {
  return queryOptions({
    queryKey: ["failures", type],
    queryFn: ({ signal }) => call(client.GET("/api/failures", { params: { query: { type } }, signal })),
  });
}

const SCHEDULES_SECONDS = 5;

/** With the strip of their latest runs. */
export function schedulesQuery(cursor?: string) {
  return queryOptions({
    queryKey: ["schedules", cursor],
    queryFn: ({ signal }) =>
      call(
        client.GET("/api/schedules", { params: { query: { limit: 50, runs: 20, ...(cursor && { cursor }) } }, signal }),
      ),
    placeholderData: keepPreviousData,
    refetchInterval: SCHEDULES_SECONDS * 1000, // not `live`: each reads hundreds of tasks
  });
}

/** What these times mean, and the next ten. */
export function previewQuery(times: ScheduleTimes) {
  return queryOptions({
    queryKey: ["schedule-preview", times],
    queryFn: ({ signal }) => call(client.GET("/api/schedule-preview", { params: { query: times }, signal })),
    retry: false,
  });
}

export function flowsQuery(cursor?: string) {
  return queryOptions({
    queryKey: ["flows", cursor],
    queryFn: ({ signal }) =>
      call(client.GET("/api/flows", { params: { query: { limit: 50, ...(cursor && { cursor }) } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: FLOWS_SECONDS * 1000, // not `live`: each counts its tasks
  });
}

const FLOWS_SECONDS = 5;

/** Not `live`: all its tasks are read for it. The page says how often (pages/flow/flow-page.tsx). */
export function flowQuery(id: string) {
  return queryOptions({
    queryKey: ["flow", id],
    queryFn: ({ signal }) => call(client.GET("/api/flows/{flow_id}", { params: { path: { flow_id: id } }, signal })),
  });
}

export function workerQuery(id: string) {
  return queryOptions({
    queryKey: ["workers", id],
    queryFn: ({ signal }) => call(client.GET("/api/workers/{worker}", { params: { path: { worker: id } }, signal })),
    meta: live,
  });
}

export function auditQuery(query: AuditQuery) {
  return queryOptions({
    queryKey: ["audit", query],
    queryFn: ({ signal }) => call(client.GET("/api/audit", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    meta: live,
  });
}
