import type { TaskType } from "@/api/model";
import type { qualified } from "@/pages/tasks/search/qualified";
import { COLUMNS, type Column } from "@/pages/types/sorting";
import { count } from "@/text/number";
import { duration } from "@/text/time";

export interface Figure {
  column: Column;
  label: string;
  text: string;
  /** Nothing to look at. */
  empty: boolean;
  /** Leads to the tasks that it counts. */
  search: Parameters<typeof qualified>[0] | null;
}

/** What is counted of a type, in the order of the columns. */
export function figuresOf(type: TaskType): Figure[] {
  const { type: name, oldestDueSeconds: oldest } = type;
  const searches: Partial<Record<Column, Figure["search"]>> = {
    pending: { type: name, status: "pending" },
    waiting: { type: name, status: "failed", finished: "no" },
    processing: { type: name, status: "processing" },
    completed: { type: name, status: "completed" },
    failed: { type: name, status: "failed", finished: "yes" },
  };
  return (Object.keys(COLUMNS) as Column[]).flatMap((column) => {
    const { label, value } = COLUMNS[column];
    if (value === null) return [];
    const found = value(type);
    // In whole seconds: tenths that jump are no use to anybody.
    const age = oldest == null ? "–" : duration(Math.max(1000, Math.floor(oldest) * 1000));
    const lengths: Partial<Record<Column, [string, boolean]>> = {
      oldest: [age, oldest == null],
      runP95: length(type.runP95Ms),
      waitedP95: length(type.waitedP95Ms),
    };
    const [text, empty] = lengths[column] ?? [count(found), found === 0];
    return [{ column, label, text, empty, search: searches[column] ?? null }];
  });
}

function length(ms: number | null | undefined): [string, boolean] {
  return ms == null ? ["–", true] : [duration(ms), false];
}
