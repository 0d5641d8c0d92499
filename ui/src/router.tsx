/** All pages. Each is loaded when it is first opened. A new path goes into PAGES of server/dashboard.py too. */
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { BASE } from "@/api/place";
import { ErrorPage, PageNotLoaded } from "@/app/error-page";
import { rememberList, rememberTask } from "@/app/last-list";
import { NotFoundPage } from "@/app/not-found-page";
import { Shell } from "@/app/shell";
import { Loading } from "@/components/loading";
import { readAuditSearch } from "@/pages/audit/search";
import { readStatsSearch, readTypeSearch } from "@/pages/stats/ranges";
import { rememberedColumns } from "@/pages/tasks/column-choice";

/** Loaded when it is first opened. What fails to load must not take the reader out of the dashboard. */
function page<Module extends Record<Name, () => ReactNode>, Name extends string>(
  load: () => Promise<Module>,
  name: Name & keyof Module,
) {
  return lazyRouteComponent(
    () =>
      load().catch(() => {
        throw new PageNotLoaded();
      }),
    name,
  );
}

const rootRoute = createRootRoute({ component: Shell, notFoundComponent: NotFoundPage });

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/tasks", replace: true });
  },
});

/** Everything that the list shows is in its address, so that a view can be sent to somebody. */
export interface TasksSearch {
  /** The query with its qualifiers: `type:send_email status:failed`. */
  q?: string;
  /** Where the page starts. */
  cursor?: string;
  /** Tasks on a page, where not the usual number. */
  limit?: string;
  /** The columns, where not the usual ones. */
  cols?: string;
  /** The order, where it is not by creation. */
  sort?: string;
}

const TASKS_SEARCH = ["q", "cursor", "limit", "cols", "sort"] as const satisfies (keyof TasksSearch)[];

const tasksRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tasks",
  validateSearch: (given: Record<string, string>): TasksSearch =>
    Object.fromEntries(TASKS_SEARCH.flatMap((name) => (given[name] ? [[name, given[name]]] : []))),
  beforeLoad: ({ search }) => {
    const cols = rememberedColumns();
    if (cols && !search.cols) throw redirect({ to: "/tasks", search: { ...search, cols }, replace: true });
  },
  component: page(() => import("@/pages/tasks/tasks-page"), "TasksPage"),
  onLeave: ({ search }) => rememberList({ ...search }),
});

const taskRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/tasks/$taskId",
  component: page(() => import("@/pages/task/task-page"), "TaskPage"),
  onLeave: ({ params }) => rememberTask(params.taskId),
});

const statsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/stats",
  validateSearch: readStatsSearch,
  component: page(() => import("@/pages/stats/stats-page"), "StatsPage"),
});

const workersRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/workers",
  component: page(() => import("@/pages/workers/workers-page"), "WorkersPage"),
});

const workerRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/workers/$workerId",
  component: page(() => import("@/pages/worker/worker-page"), "WorkerPage"),
});

const auditRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: page(() => import("@/pages/audit/audit-page"), "AuditPage"),
});

const newTaskRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/new",
  validateSearch: (given: Record<string, string>): { type?: string; copyOf?: string } => ({
    ...(given["type"] ? { type: given["type"] } : {}),
    ...(given["copyOf"] ? { copyOf: given["copyOf"] } : {}),
  }),
  component: page(() => import("@/pages/new/new-task-page"), "NewTaskPage"),
});

const typesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/types",
  component: page(() => import("@/pages/types/types-page"), "TypesPage"),
});

const typeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/types/$type",
  validateSearch: readTypeSearch,
  component: page(() => import("@/pages/type/type-page"), "TypePage"),
});

const apiDocsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/api/docs",
  validateSearch: (given: Record<string, string>): { q?: string; operation?: string } => ({
    ...(given["q"] ? { q: given["q"] } : {}),
    ...(given["operation"] ? { operation: given["operation"] } : {}),
  }),
  component: page(() => import("@/pages/api-docs/api-docs-page"), "ApiDocsPage"),
});

/** Where the page starts, which is by name. */
const schedulesRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/schedules",
  validateSearch: (given: Record<string, string>): { cursor?: string } =>
    given["cursor"] ? { cursor: given["cursor"] } : {},
  component: page(() => import("@/pages/schedules/schedules-page"), "SchedulesPage"),
});

const flowsRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/flows",
  validateSearch: (given: Record<string, string>): { cursor?: string } =>
    given["cursor"] ? { cursor: given["cursor"] } : {},
  component: page(() => import("@/pages/flows/flows-page"), "FlowsPage"),
});

const flowRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/flows/$flowId",
  component: page(() => import("@/pages/flow/flow-page"), "FlowPage"),
});

export const router = createRouter({
  routeTree: rootRoute.addChildren([
    homeRoute,
    tasksRoute,
    taskRoute,
    newTaskRoute,
    statsRoute,
    workersRoute,
    workerRoute,
    typesRoute,
    typeRoute,
    apiDocsRoute,
    schedulesRoute,
    flowsRoute,
    flowRoute,
    auditRoute,
  ]),
  basepath: BASE.pathname,
  defaultPreload: "intent",
  defaultPendingComponent: Loading,
  defaultErrorComponent: ErrorPage,
  scrollRestoration: true,
  // Plain text in addresses, nothing encoded as JSON: people read and edit them.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
    const text = new URLSearchParams(given as [string, string][]).toString();
    return text ? `?${text}` : "";
  },
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
