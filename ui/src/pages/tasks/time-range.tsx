import { now } from "@/api/clock";
import { Select } from "@/components/field";
import { Moment } from "@/components/moment";
import { type Filter, WINDOWS, type Window } from "@/pages/tasks/search/filter";

const LABELS: Record<Window, string> = {
  "15m": "Last 15 minutes",
  "1h": "Last hour",
  "24h": "Last 24 hours",
  "7d": "Last 7 days",
};
const CUSTOM = "custom";
const HOUR_MS = 3_600_000;

export function TimeRange({ filter, onFilter }: { filter: Filter; onFilter: (filter: Filter) => void }) {
  const custom = filter.after !== null || filter.before !== null;

  function choose(value: string) {
    const start = { last: null, after: null, before: null };
    if (value === CUSTOM) {
      onFilter({ ...filter, ...start, after: new Date(Math.floor(now() / HOUR_MS - 1) * HOUR_MS).toISOString() });
    } else onFilter({ ...filter, ...start, last: value === "" ? null : (value as Window) });
  }

  return (
    <>
      <Select
        aria-label="Created"
        className="w-40 max-md:w-auto max-md:grow max-md:basis-36"
        value={custom ? CUSTOM : (filter.last ?? "")}
        onChange={({ target }) => choose(target.value)}
      >
        <option value="">Any time</option>
        {(Object.keys(WINDOWS) as Window[]).map((window) => (
          <option key={window} value={window}>
            {LABELS[window]}
          </option>
        ))}
        <option value={CUSTOM}>From … to …</option>
      </Select>
      {custom && (
        <>
          <Moment label="From" at={filter.after} onChange={(after) => onFilter({ ...filter, after })} />
          <Moment label="To" at={filter.before} onChange={(before) => onFilter({ ...filter, before })} />
        </>
      )}
    </>
  );
}
