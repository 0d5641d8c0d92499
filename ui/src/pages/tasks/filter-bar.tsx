import { STATUSES, type Stats, type TaskStatus } from "@/api/model";
import { Checkbox, Select } from "@/components/field";
import { type Filter, NOTHING } from "@/pages/tasks/search/filter";
import { TimeRange } from "@/pages/tasks/time-range";
import { escapeText } from "@/text/escape";
import { compact, count } from "@/text/number";

export interface FilterBarProps {
  filter: Filter;
  types: readonly string[];
  stats: Stats | undefined;
  onFilter: (filter: Filter) => void;
}

const SEVERAL = "\u0000several"; // no type can be called so

/** The same as the search text, for the mouse. */
export function FilterBar({ filter, types, stats, onFilter }: FilterBarProps) {
  const single = filter.types.length === 1 && !filter.prefix ? filter.types[0] : undefined;
  const several = single === undefined && (filter.types.length > 0 || filter.prefix !== null);
  const offered = single === undefined || types.includes(single) ? types : [single, ...types];
  const counts = countsFor(filter, stats);

  function check(status: TaskStatus, checked: boolean) {
    const statuses = STATUSES.filter((each) => (each === status ? checked : filter.statuses.includes(each)));
    onFilter({ ...filter, statuses });
  }

  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
      <Select
        aria-label="Type"
        className="w-48 max-md:w-auto max-md:grow max-md:basis-36"
        value={several ? SEVERAL : (single ?? "")}
        onChange={({ target }) =>
          onFilter({ ...filter, prefix: NOTHING.prefix, types: target.value ? [target.value] : NOTHING.types })
        }
      >
        <option value="">All types</option>
        {several && <option value={SEVERAL}>{filter.prefix ? "By name, see search" : "Several, see search"}</option>}
        {offered.map((type) => (
          <option key={type} value={type}>
            {escapeText(type.length > 60 ? `${type.slice(0, 60)}…` : type)}
          </option>
        ))}
      </Select>
      <TimeRange filter={filter} onFilter={onFilter} />
      <fieldset className="flex flex-wrap gap-1.5" title={counts?.title}>
        <legend className="sr-only">Status</legend>
        {STATUSES.map((status) => (
          // biome-ignore lint/a11y/noLabelWithoutControl: the check-box is the control
          <label
            key={status}
            className="flex h-8 items-center gap-1.5 rounded-md border px-2 capitalize hover:bg-raised has-checked:border-accent has-checked:bg-accent-soft"
          >
            <Checkbox
              checked={filter.statuses.includes(status)}
              onChange={({ target }) => check(status, target.checked)}
            />
            {status}
            {counts && (
              <span className="text-dim text-xs" title={count(counts.by[status])} data-count={status}>
                {compact(counts.by[status])}
              </span>
            )}
          </label>
        ))}
      </fieldset>
    </div>
  );
}

function countsFor(filter: Filter, stats: Stats | undefined): { by: Record<TaskStatus, number>; title: string } | null {
  if (!stats) return null;
  if (filter.types.length === 0 && !filter.prefix) return { by: stats, title: "Counts of the whole queue" };
  const { prefix } = filter;
  const chosen = Object.entries(stats.byType).filter(
    ([type]) =>
      (filter.types.length === 0 || filter.types.includes(type)) && (prefix === null || type.startsWith(prefix)),
  );
  const by = { pending: 0, processing: 0, completed: 0, failed: 0, cancelled: 0 };
  for (const [, of] of chosen) for (const status of STATUSES) by[status] += of[status];
  return { by, title: "Counts of the chosen types" };
}
