import type { ReactNode } from "react";
import type { Distribution } from "@/api/model";
import { Card } from "@/components/card";
import { Loading } from "@/components/loading";
import { percent } from "@/pages/stats/steps";
import { barsOf } from "@/pages/type/histogram-bars";
import { length } from "@/pages/type/type-figures";
import { count, plural } from "@/text/number";

export interface HistogramProps {
  title: string;
  /** What is counted. */
  what: string;
  times: Distribution | undefined;
  /** What the times are, in a sentence. */
  children: ReactNode;
}

/** A row for each bucket: nothing here that keyboard or screen reader cannot have. */
export function Histogram({ title, what, times, children }: HistogramProps) {
  if (!times) {
    return (
      <Card title={title}>
        <Loading lines={6} />
      </Card>
    );
  }
  const bars = barsOf(times.buckets);
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return (
    <Card title={title}>
      <p className="text-dim">{children}</p>
      {times.count === 0 ? (
        <p className="py-8 text-center text-dim">None in this time.</p>
      ) : (
        <>
          <dl className="my-3 flex flex-wrap gap-x-6 gap-y-1">
            {(
              [
                ["p50", times.p50Ms],
                ["p95", times.p95Ms],
                ["p99", times.p99Ms],
                ["mean", times.meanMs],
              ] as const
            ).map(([name, ms]) => (
              <div key={name} className="flex items-baseline gap-1.5">
                <dt className="text-dim text-xs">{name}</dt>
                <dd className="font-semibold">{length(ms)}</dd>
              </div>
            ))}
            <div className="flex items-baseline gap-1.5">
              <dt className="sr-only">counted</dt>
              <dd className="text-dim">{plural(times.count, what)}</dd>
            </div>
          </dl>
          <ul aria-label={`${title}, by length`} className="space-y-0.5">
            {bars.map((bar) => (
              <li
                key={bar.label}
                className="grid grid-cols-[6.5rem_minmax(0,1fr)_3.5rem_3rem] items-center gap-x-2 text-xs"
              >
                <span className="whitespace-nowrap text-dim">{bar.label}</span>
                <span className="h-3.5" aria-hidden="true">
                  {bar.count > 0 && (
                    <span
                      className="block h-full min-w-0.5 rounded-xs bg-(--chart-pending)"
                      style={{ width: `${(bar.count / most) * 100}%` }}
                    />
                  )}
                </span>
                <span className="text-right">{count(bar.count)}</span>
                <span className="text-right text-dim">{percent(bar.count / times.count)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}
