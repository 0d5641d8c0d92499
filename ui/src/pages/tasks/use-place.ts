import { getRouteApi, useLocation, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { type ColumnId, readColumns, rememberColumns, writeColumns } from "@/pages/tasks/column-choice";
import { type Order, readOrder } from "@/pages/tasks/order";
import { SIZES, type Size } from "@/pages/tasks/paging";
import type { TasksSearch } from "@/router";

declare module "@tanstack/react-router" {
  interface HistoryState {
    /** The cursors of the pages before this one, the first page's is empty. The API can only go on, not back. */
    trail?: string[];
  }
}

const route = getRouteApi("/tasks");
const NO_TRAIL: string[] = [];

/** Which tasks are shown: all of it is in the address, so the browser's back button and a copied link work. */
export function usePlace() {
  const { q = "", cursor = null, limit, cols, sort } = route.useSearch();
  const trail = useLocation({ select: ({ state }) => state.trail }) ?? NO_TRAIL;
  const navigate = useNavigate({ from: "/tasks" });
  const size: Size = SIZES.find((each) => each === limit) ?? "50";
  const order = readOrder(sort);
  /** How it is shown stays, whatever is searched for. */
  const shown = { ...(cols && { cols }), ...(order !== "created" && { sort: order }) };
  const kept = { ...(size !== "50" && { limit: size }), ...shown };

  const columns = useMemo(() => readColumns(cols), [cols]);

  function go(to: string | null, by: string[]) {
    void navigate({ search: { ...(q && { q }), ...(to && { cursor: to }), ...kept }, state: { trail: by } });
  }

  return {
    q,
    cursor,
    size,
    /** How many tasks are before this page; null: not known. */
    before: cursor ? (trail.length > 0 ? trail.length * Number(size) : null) : 0,
    search: (next: string) => {
      if (next !== q || cursor) void navigate({ search: { ...(next && { q: next }), ...kept } });
    },
    resize: (next: Size) =>
      void navigate({ search: { ...(q && { q }), ...(next !== "50" && { limit: next }), ...shown } }),
    order,
    orderBy: (next: Order) => {
      const { sort: _, ...others } = kept;
      void navigate({ search: { ...(q && { q }), ...others, ...(next !== "created" && { sort: next }) } });
    },
    columns,
    choose: (next: readonly ColumnId[]) => {
      const text = writeColumns(next);
      rememberColumns(text);
      const { cols: _, ...others } = kept;
      const search = { ...(q && { q }), ...(cursor && { cursor }), ...others, ...(text && { cols: text }) };
      void navigate({ search, state: { trail }, replace: true });
    },
    /** What a saved search keeps. */
    view: { ...(q && { q }), ...shown },
    openView: (view: TasksSearch) => {
      rememberColumns(view.cols);
      void navigate({ search: view });
    },
    first: () => go(null, NO_TRAIL),
    next: (to: string) => go(to, [...trail, cursor ?? ""]),
    previous: trail.length > 0 ? () => go(trail.at(-1) || null, trail.slice(0, -1)) : null,
    open: (taskId: string) => void navigate({ to: "/tasks/$taskId", params: { taskId } }),
  };
}
