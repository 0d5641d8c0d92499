import { now } from "@/api/clock";
import type { Series, TaskType } from "@/api/model";
import { Loading } from "@/components/loading";
import { percent, rate, type Step, stepsOf, summaryOf } from "@/pages/stats/steps";
import { stepLabel } from "@/pages/stats/time-axis";
import { count, plural } from "@/text/number";
import { duration } from "@/text/time";

export function TypeFigures({ type, series }: { type: TaskType; series: Series | undefined }) {
  if (!series) return <Loading lines={3} />;
  const steps = stepsOf(series, now());
  const summary = summaryOf(steps, now());
  const { counts, oldestDueSeconds } = type;
  const { runTime, waited } = series;
  const shown: readonly [label: string, text: string, more?: string][] = [
    ["Throughput", `${rate(summary.perMinute)}/min`, `${count(summary.completed)} completed`],
    ["Failed for good", percent(summary.failedShare), plural(summary.failed, "task")],
    ["Attempts failed", percent(summary.attemptsFailedShare), `${count(summary.retried)} retried`],
    ["Run time p95", length(runTime.p95Ms), `p50 ${length(runTime.p50Ms)}`],
    ["Waited p95", length(waited.p95Ms), `p50 ${length(waited.p50Ms)}`],
    [
      "Waiting now",
      count(counts.pending + counts.waiting),
      oldestDueSeconds == null ? "none is due" : `oldest due for ${length(Math.floor(oldestDueSeconds) * 1000)}`,
    ],
    ["Running now", count(counts.processing)],
  ];
  return (
    <>
      <dl className="grid grid-cols-2 gap-x-4 gap-y-3 sm:grid-cols-4 xl:grid-cols-7">
        {shown.map(([label, text, more]) => (
          <div key={label} data-figure={label}>
            <dt className="text-dim text-xs">{label}</dt>
            <dd className="font-semibold text-lg">{text}</dd>
            {more && <dd className="text-dim text-xs">{more}</dd>}
          </div>
        ))}
      </dl>
      <Strip steps={steps} />
    </>
  );
}

const PARTS = [
  ["completed", "fill-(--chart-completed)"],
  ["retried", "fill-(--chart-processing)"],
  ["failed", "fill-(--chart-failed)"],
] as const;

/** Throughput at a glance; the page Stats has the chart. */
function Strip({ steps }: { steps: readonly Step[] }) {
  const most = Math.max(1, ...steps.map((step) => step.completed + step.retried + step.failed));
  const [first, last] = [steps[0], steps.at(-1)];
  return (
    <figure className="mt-4">
      <svg
        role="img"
        aria-label={`Throughput over time, at most ${count(most)} in a step`}
        viewBox={`0 0 ${steps.length} 100`}
        preserveAspectRatio="none"
        className="h-16 w-full border-b"
      >
        {steps.map((step, at) => {
          let top = 100;
          return (
            <g key={step.at}>
              <title>{`${stepLabel(step)}: ${count(step.completed)} completed, ${count(step.retried)} retried, ${count(step.failed)} failed`}</title>
              {PARTS.map(([field, fill]) => {
                const height = (step[field] / most) * 100;
                top -= height;
                return <rect key={field} x={at + 0.08} width={0.84} y={top} height={height} className={fill} />;
              })}
            </g>
          );
        })}
      </svg>
      <figcaption className="mt-1 flex flex-wrap justify-between gap-x-4 text-dim text-xs">
        <span>{first && stepLabel(first)}</span>
        <span className="max-sm:order-first max-sm:w-full">
          completed, retried, failed per step, at most {count(most)}
        </span>
        <span>{last && stepLabel(last)}</span>
      </figcaption>
    </figure>
  );
}

export function length(ms: number | null | undefined): string {
  return ms == null ? "–" : duration(ms);
}
