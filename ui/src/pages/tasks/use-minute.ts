import { useRef } from "react";
import { now } from "@/api/clock";
import { useLive } from "@/hooks/use-live";
import { useTicking } from "@/hooks/use-ticking";
import { minuteOf } from "@/pages/tasks/search/requests";

/** The minute that "the last hour" counts back from. It stands still while live updates do; a new search sets it. */
export function useMinute(search: string, moves: boolean): number {
  const { state } = useLive();
  const held = useRef({ search, minute: minuteOf(now()) });
  if (held.current.search !== search) held.current = { search, minute: minuteOf(now()) };
  const runs = moves && state !== "paused" && state !== "hidden";
  const minute = Number(useTicking(() => String(runs ? minuteOf(now()) : held.current.minute)));
  held.current.minute = minute;
  return minute;
}
