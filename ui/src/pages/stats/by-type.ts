import { STATUSES, type Stats, type TaskStatus } from "@/api/model";

export interface TypeBar {
  /** Null: all the types that have no bar of their own. */
  type: string | null;
  /** How many types it stands for. */
  types: number;
  counts: Record<TaskStatus, number>;
  /** Of the statuses that are shown. */
  total: number;
}

/** The types with most tasks, and all others in one. */
export function typeBars(stats: Stats, shown: readonly TaskStatus[], most: number): TypeBar[] {
  const bars = Object.entries(stats.byType)
    .map(([type, counts]) => bar(type, 1, counts, shown))
    .filter(({ total }) => total > 0)
    .sort((one, other) => other.total - one.total || (one.type ?? "").localeCompare(other.type ?? ""));
  if (bars.length <= most) return bars;
  const others = bars.slice(most - 1);
  const sums = Object.fromEntries(
    STATUSES.map((status) => [status, others.reduce((sum, { counts }) => sum + counts[status], 0)]),
  ) as Record<TaskStatus, number>;
  return [...bars.slice(0, most - 1), bar(null, others.length, sums, shown)];
}

function bar(
  type: string | null,
  types: number,
  given: Record<TaskStatus, number>,
  shown: readonly TaskStatus[],
): TypeBar {
  const counts = Object.fromEntries(STATUSES.map((status) => [status, given[status]])) as Record<TaskStatus, number>;
  return { type, types, counts, total: shown.reduce((sum, status) => sum + counts[status], 0) };
}
