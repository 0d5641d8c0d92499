import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import type { ListedTask, TaskQuery } from "@/api/model";
import { tasksQuery } from "@/api/queries";
import { useLive } from "@/hooks/use-live";
import { type NewTasks, newerThan } from "@/pages/tasks/newer";

const LOOK_AHEAD = 20;

interface Held {
  view: string;
  tasks: readonly ListedTask[];
}

/**
 * One page of tasks. While somebody works with the rows (`busy`) the same tasks stay in the same places, brought up to
 * date where they are; otherwise the page follows the queue. `view` names the page: another one starts anew.
 */
export function useTaskList(query: TaskQuery, view: string, enabled: boolean, busy: boolean) {
  const { state } = useLive();
  const page = useQuery({ ...tasksQuery(query), enabled });
  const [held, setHeld] = useState<Held | null>(null);
  const shown = page.isPlaceholderData ? undefined : page.data?.tasks;

  const latest = useRef<readonly ListedTask[] | undefined>(undefined);
  latest.current = shown;
  const holds = busy && state !== "paused";
  const there = shown !== undefined; // who was quicker than the list holds it once it is there
  useEffect(() => {
    const tasks = there ? latest.current : undefined;
    if (holds && tasks) setHeld((had) => (had?.view === view ? had : { view, tasks }));
    if (!holds) setHeld(null);
  }, [holds, view, there]);

  const kept = held?.view === view && held.tasks.length > 0 ? held.tasks : null;
  const again = useQuery({
    ...tasksQuery({ id: kept?.map(({ id }) => id) ?? [], limit: 100 }),
    enabled: kept !== null && enabled,
  });
  const still = kept ? inPlace(kept, again.isPlaceholderData ? undefined : again.data?.tasks) : [];
  const tasks = still.length > 0 ? still : page.data?.tasks;

  return { page, tasks, newTasks: useNewTasks(query, page.data?.tasks, kept), release: () => setHeld(null) };
}

/** The kept rows as they are now; those that are gone are gone. */
function inPlace(kept: readonly ListedTask[], now: readonly ListedTask[] | undefined): readonly ListedTask[] {
  if (!now) return kept;
  const byId = new Map(now.map((task) => [task.id, task]));
  return kept.flatMap(({ id }) => byId.get(id) ?? []);
}

/** How many have come since, where the page does not show them by itself. */
function useNewTasks(
  query: TaskQuery,
  fresh: readonly ListedTask[] | undefined,
  kept: readonly ListedTask[] | null,
): NewTasks {
  const { cursor, limit, sort, ...filter } = query;
  const deep = cursor !== undefined && cursor !== null;
  // These move on by the minute, and old tasks are not new ones.
  const { createdAfter: _, endedAfter: __, ...lasting } = filter;
  const scope = JSON.stringify(lasting);
  const head = useQuery({ ...tasksQuery({ ...filter, limit: LOOK_AHEAD }), enabled: deep && !sort });
  const newest = head.isPlaceholderData ? undefined : head.data?.tasks[0]?.id;
  const [mark, setMark] = useState<{ scope: string; id: string } | null>(null);
  useEffect(() => {
    if (!deep) setMark(null);
    else if (newest) setMark((had) => (had?.scope === scope ? had : { scope, id: newest }));
  }, [deep, newest, scope]);
  if (sort) return newerThan(undefined); // in another order new ones are not at the top
  if (deep) return newerThan(mark?.scope === scope ? mark.id : undefined, head.data?.tasks, LOOK_AHEAD);
  return newerThan(kept?.[0]?.id, fresh, limit ?? LOOK_AHEAD);
}
