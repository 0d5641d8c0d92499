import { now } from "@/api/clock";
import { Moment } from "@/components/moment";
import { Segmented } from "@/components/segmented";
import { RANGES, type Range, type StatsSearch } from "@/pages/stats/ranges";

const OWN = "own";
const OPTIONS = [
  ...RANGES.map(({ value, label }) => ({ value, label })),
  { value: OWN, label: "From … to …" },
] as const;
const HOUR_MS = 3_600_000;
const NOTHING = { range: undefined, from: undefined, to: undefined };

export interface WindowChoiceProps {
  search: StatsSearch;
  onChange: (search: { [Field in "range" | "from" | "to"]?: StatsSearch[Field] | undefined }) => void;
}

/** The time that is shown: one up to now, or one of your own. */
export function WindowChoice({ search: { range = "1h", from, to }, onChange }: WindowChoiceProps) {
  function choose(value: Range | typeof OWN) {
    if (value !== OWN) return onChange({ ...NOTHING, range: value });
    const end = Math.floor(now() / HOUR_MS) * HOUR_MS;
    onChange({ ...NOTHING, from: new Date(end - HOUR_MS).toISOString(), to: new Date(end).toISOString() });
  }

  return (
    <>
      <Segmented<Range | typeof OWN> label="Range" value={from ? OWN : range} options={OPTIONS} onChange={choose} />
      {from && (
        <>
          <Moment label="From" at={from} onChange={(at) => onChange(at ? { from: at } : NOTHING)} />
          <Moment label="To" at={to ?? null} onChange={(at) => onChange({ to: at ?? undefined })} />
        </>
      )}
    </>
  );
}
