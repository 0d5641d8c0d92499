import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { STATUSES, type Stats, type TaskStatus } from "@/api/model";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import { type TypeBar, typeBars } from "@/pages/stats/by-type";
import { qualified } from "@/pages/tasks/search/qualified";
import { count } from "@/text/number";

const MOST_BARS = 12;

const FILLS: Record<TaskStatus, string> = {
  pending: "bg-(--chart-pending)",
  processing: "bg-(--chart-processing)",
  completed: "bg-(--chart-completed)",
  failed: "bg-(--chart-failed)",
  cancelled: "bg-(--chart-cancelled)",
};

/** A bar for each type, of links: nothing here that keyboard or screen reader cannot have. */
export function TypesBars({ stats }: { stats: Stats }) {
  const [hidden, setHidden] = useState<readonly TaskStatus[]>([]);
  const shown = STATUSES.filter((status) => !hidden.includes(status));
  const bars = typeBars(stats, shown, MOST_BARS);
  const widest = Math.max(1, ...bars.map(({ total }) => total));

  function toggle(status: TaskStatus) {
    setHidden(hidden.includes(status) ? hidden.filter((each) => each !== status) : [...hidden, status]);
  }

  return (
    <Card title="Tasks by type">
      <fieldset className="mb-3 flex flex-wrap gap-1">
        <legend className="sr-only">Statuses that the bars show</legend>
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            aria-pressed={!hidden.includes(status)}
            onClick={() => toggle(status)}
            className="group inline-flex h-7 items-center gap-1.5 rounded-md px-1.5 text-dim text-xs capitalize hover:bg-raised"
          >
            <span
              aria-hidden="true"
              className={classes("size-2.5 rounded-xs group-aria-[pressed=false]:bg-line-strong", FILLS[status])}
            />
            <span className="group-aria-[pressed=false]:line-through">{status}</span>
          </button>
        ))}
      </fieldset>
      {bars.length === 0 ? (
        <p className="py-6 text-center text-dim">No task has one of these statuses.</p>
      ) : (
        <ul aria-label="Tasks by type" className="-mx-2">
          {bars.map((bar) => (
            <li key={bar.type ?? ""}>
              <Bar bar={bar} shown={shown} widest={widest} />
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function Bar({ bar, shown, widest }: { bar: TypeBar; shown: readonly TaskStatus[]; widest: number }) {
  const parts = shown.filter((status) => bar.counts[status] > 0);
  const said = parts.map((status) => `${count(bar.counts[status])} ${status}`).join(", ");
  const content = (
    <>
      <span className="truncate">
        {bar.type === null ? `${bar.types} other types` : <SafeText text={bar.type} max={120} />}
      </span>
      <span
        className="col-span-2 row-start-2 flex h-3.5 min-w-0 gap-px sm:col-span-1 sm:col-start-2 sm:row-start-1"
        aria-hidden="true"
      >
        {parts.map((status) => (
          <span
            key={status}
            className={classes("min-w-0.5 first:rounded-l-xs last:rounded-r-xs", FILLS[status])}
            style={{ width: `${(bar.counts[status] / widest) * 100}%` }}
          />
        ))}
      </span>
      <span className="text-right font-medium">
        {count(bar.total)}
        <span className="sr-only">: {said}</span>
      </span>
    </>
  );
  const look =
    "grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 rounded-md px-2 py-1 hover:bg-raised sm:grid-cols-[minmax(6rem,13rem)_minmax(0,1fr)_4.5rem]";
  return bar.type === null ? (
    <Link to="/types" title={said} className={look}>
      {content}
    </Link>
  ) : (
    <Link to="/tasks" search={{ q: qualified({ type: bar.type }) }} title={said} className={look}>
      {content}
    </Link>
  );
}
