import { memo, type ReactNode } from "react";
import { Area, AreaChart, Bar, BarChart, Line, LineChart } from "recharts";
import { axes } from "@/pages/stats/chart-axes";
import { ChartFrame } from "@/pages/stats/chart-frame";
import { loneDot } from "@/pages/stats/lone-dot";
import { percent, rate, type Step, type Summary } from "@/pages/stats/steps";
import { count } from "@/text/number";
import { duration } from "@/text/time";

export interface ChartsProps {
  steps: Step[];
  summary: Summary;
  stepMinutes: number;
}

const STILL = { isAnimationActive: false } as const;
const MARGIN = { top: 8, right: 8, bottom: 0, left: 0 };

/** The four charts. Where there was no sample there is a gap, not a zero. */
export default memo(function Charts({ steps, summary, stepMinutes }: ChartsProps) {
  const common = { data: steps, margin: MARGIN, syncId: "over-time" };
  const per = stepMinutes === 1 ? "minute" : duration(stepMinutes * 60_000);
  return (
    <div className="grid gap-x-8 gap-y-6 lg:grid-cols-2">
      <ChartFrame
        title="Throughput"
        unit={`tasks per ${per}`}
        summary={
          <>
            <Figure>{rate(summary.perMinute)}</Figure> a minute · <Figure>{rate(summary.perMinute * 60)}</Figure> an
            hour on average: {count(summary.completed)} completed, {count(summary.retried)} retried,{" "}
            {count(summary.failed)} failed
          </>
        }
        series={[
          { name: "Completed", colour: "var(--chart-completed)" },
          { name: "Retried", colour: "var(--chart-processing)" },
          { name: "Failed", colour: "var(--chart-failed)" },
        ]}
        empty={summary.completed + summary.failed + summary.retried === 0 ? "No task ended in this time." : null}
      >
        {(label) => (
          <BarChart {...common} aria-label={label} barCategoryGap="12%">
            {axes(steps, {
              kind: "count",
              most: highest(steps, (step) => step.completed + step.retried + step.failed),
            })}
            <Bar {...STILL} dataKey="completed" name="Completed" stackId="all" fill="var(--chart-completed)" />
            <Bar {...STILL} dataKey="retried" name="Retried" stackId="all" fill="var(--chart-processing)" />
            <Bar {...STILL} dataKey="failed" name="Failed" stackId="all" fill="var(--chart-failed)" />
          </BarChart>
        )}
      </ChartFrame>
      <ChartFrame
        title="Failure rate"
        unit="% of what ended"
        summary={
          <>
            <Figure>{percent(summary.failedShare)}</Figure> of tasks failed for good,{" "}
            <Figure>{percent(summary.attemptsFailedShare)}</Figure> of attempts failed
          </>
        }
        series={[
          { name: "Tasks", colour: "var(--chart-failed)" },
          { name: "Attempts", colour: "var(--chart-processing)", dash: "4 3" },
        ]}
        empty={summary.attemptsFailedShare === null ? "No attempt ended in this time." : null}
      >
        {(label) => (
          <LineChart {...common} aria-label={label}>
            {axes(steps, { kind: "share", most: highest(steps, (step) => step.attemptsFailedShare) })}
            {line(steps, "failedShare", "Tasks", "var(--chart-failed)")}
            {line(steps, "attemptsFailedShare", "Attempts", "var(--chart-processing)", "4 3")}
          </LineChart>
        )}
      </ChartFrame>
      <ChartFrame
        title="Latency"
        unit="how long attempts took"
        summary={
          summary.latest && (
            <>
              Latest: p50 <Figure>{duration(summary.latest.p50 ?? 0)}</Figure> · p95{" "}
              <Figure>{duration(summary.latest.p95 ?? 0)}</Figure> · p99{" "}
              <Figure>{duration(summary.latest.p99 ?? 0)}</Figure>
            </>
          )
        }
        series={[
          { name: "p50", colour: "var(--chart-completed)" },
          { name: "p95", colour: "var(--chart-pending)", dash: "6 3" },
          { name: "p99", colour: "var(--chart-failed)", dash: "2 3" },
        ]}
        empty={summary.latest === null ? "No attempt ended in this time." : null}
      >
        {(label) => (
          <LineChart {...common} aria-label={label}>
            {axes(steps, { kind: "duration", most: highest(steps, (step) => step.p99) })}
            {line(steps, "p50", "p50", "var(--chart-completed)")}
            {line(steps, "p95", "p95", "var(--chart-pending)", "6 3")}
            {line(steps, "p99", "p99", "var(--chart-failed)", "2 3")}
          </LineChart>
        )}
      </ChartFrame>
      <ChartFrame
        title="Backlog age"
        unit="how long the oldest due task had waited, the most of each step"
        summary={
          summary.backlogMs !== null && (
            <>
              Latest <Figure>{duration(summary.backlogMs)}</Figure>, at most{" "}
              <Figure>{duration(summary.mostBacklogMs ?? 0)}</Figure>
            </>
          )
        }
        series={[{ name: "Oldest due task", colour: "var(--chart-pending)" }]}
        empty={summary.backlogMs === null ? "No sample in this time: no worker was there to look." : null}
      >
        {(label) => (
          <AreaChart {...common} aria-label={label}>
            {axes(steps, { kind: "duration", most: highest(steps, (step) => step.backlogMs) })}
            <Area
              {...STILL}
              dataKey="backlogMs"
              name="Oldest due task"
              stroke="var(--chart-pending)"
              fill="var(--chart-pending)"
              fillOpacity={0.15}
              strokeWidth={1.5}
              dot={loneDot(steps, "backlogMs")}
            />
          </AreaChart>
        )}
      </ChartFrame>
    </div>
  );
});

function highest(steps: readonly Step[], value: (step: Step) => number | null): number {
  return Math.max(0, ...steps.map((step) => value(step) ?? 0));
}

function Figure({ children }: { children: ReactNode }) {
  return <span className="font-semibold text-text">{children}</span>;
}

function line(
  steps: readonly Step[],
  field: "failedShare" | "attemptsFailedShare" | "p50" | "p95" | "p99",
  name: string,
  colour: string,
  dash?: string,
) {
  return (
    <Line
      {...STILL}
      dataKey={field}
      name={name}
      stroke={colour}
      strokeWidth={1.5}
      {...(dash ? { strokeDasharray: dash } : {})}
      dot={loneDot(steps, field)}
    />
  );
}
