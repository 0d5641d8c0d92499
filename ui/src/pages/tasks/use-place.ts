import { getRouteApi, useLocation, useNavigate } from "@tanstack/react-router";
import { SIZES, type Size } from "@/pages/tasks/paging";

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
  const { q = "", cursor = null, limit } = route.useSearch();
  const trail = useLocation({ select: ({ state }) => state.trail }) ?? NO_TRAIL;
  const navigate = useNavigate({ from: "/tasks" });
  const size: Size = SIZES.find((each) => each === limit) ?? "50";
  const kept = size === "50" ? {} : { limit: size };

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
    resize: (next: Size) => void navigate({ search: { ...(q && { q }), ...(next !== "50" && { limit: next }) } }),
    first: () => go(null, NO_TRAIL),
    next: (to: string) => go(to, [...trail, cursor ?? ""]),
    previous: trail.length > 0 ? () => go(trail.at(-1) || null, trail.slice(0, -1)) : null,
    open: (taskId: string) => void navigate({ to: "/tasks/$taskId", params: { taskId } }),
  };
}
