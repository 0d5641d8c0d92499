import type { TaskType } from "@/api/model";

export const COLUMNS = {
  type: { label: "Type", value: null },
  pending: { label: "Pending", value: (type: TaskType) => type.counts.pending },
  waiting: { label: "To retry", value: (type: TaskType) => type.counts.waiting },
  processing: { label: "Running", value: (type: TaskType) => type.counts.processing },
  completed: { label: "Completed", value: (type: TaskType) => type.counts.completed },
  failed: { label: "Failed", value: (type: TaskType) => type.counts.failed - type.counts.waiting },
  oldest: { label: "Oldest due", value: (type: TaskType) => type.oldestDueSeconds ?? -1 },
  runP95: { label: "Run p95", value: (type: TaskType) => type.runP95Ms ?? -1 },
  waitedP95: { label: "Waited p95", value: (type: TaskType) => type.waitedP95Ms ?? -1 },
  workers: { label: "Workers", value: (type: TaskType) => type.workers },
} as const;

export type Column = keyof typeof COLUMNS;

export interface Sorting {
  column: Column;
  descending: boolean;
}

/** Figures start with the highest. */
export function firstSorting(column: Column): Sorting {
  return { column, descending: COLUMNS[column].value !== null };
}

/** A click on the same column turns it round. */
export function sortedBy(old: Sorting, column: Column): Sorting {
  return old.column === column ? { column, descending: !old.descending } : firstSorting(column);
}

export function sortTypes(types: readonly TaskType[], { column, descending }: Sorting): TaskType[] {
  const { value } = COLUMNS[column];
  const sign = descending ? -1 : 1;
  return types.toSorted(
    (one, other) =>
      sign * (value ? value(one) - value(other) : one.type.localeCompare(other.type)) ||
      one.type.localeCompare(other.type),
  );
}

/** Nobody works on it, though there is something to do. */
export function isStranded({ handled, counts }: TaskType): boolean {
  return !handled && counts.pending + counts.waiting > 0;
}
