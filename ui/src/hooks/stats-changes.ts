import type { Stats } from "@/api/model";

/** What the stream tells after its first event: the totals, and the types that have changed or are gone. */
export type StatsChanges = Omit<Stats, "byType"> & { byType: Record<string, Stats["byType"][string] | null> };

export function changed(had: Stats, changes: StatsChanges): Stats {
  const types = Object.entries({ ...had.byType, ...changes.byType });
  return { ...changes, byType: Object.fromEntries(types.flatMap(([name, each]) => (each ? [[name, each]] : []))) };
}
