import { memo, type ReactNode } from "react";
import { Chart } from "@/pages/stats/chart";
import type { Mark } from "@/pages/stats/marks";
import { percent, rate, type Step, type Summary } from "@/pages/stats/steps";
import { count } from "@/text/number";
import { duration } from "@/text/time";

export interface ChartsProps {
  steps: Step[];
  summary: Summary;
  stepMinutes: number;
  /** What is laid over, in words; null: nothing. */
  earlier: string | null;
  log: boolean;
  marks: readonly Mark[];
}

const NOBODY_LOOKED = "No sample in this time: no worker was there to look.";

export default memo(function Charts({ steps, summary, stepMinutes, earlier, log, marks }: ChartsProps) {
  const common = { steps, earlier, log, marks };
  const per = stepMinutes === 1 ? "minute" : duration(stepMinutes * 60_000);
  const { latest, latestWaited } = summary;
  return (
    <div className="grid gap-x-8 gap-y-6 lg:grid-cols-2">
      <Chart
        {...common}
        title="Throughput"
        unit={`tasks per ${per}`}
        kind="count"
        summary={
          <>
            <Figure>{rate(summary.perMinute)}</Figure> a minute · <Figure>{rate(summary.perMinute * 60)}</Figure> an
            hour on average: {count(summary.completed)} completed, {count(summary.retried)} retried,{" "}
            {count(summary.failed)} failed
            {summary.arrived !== null && `; ${count(summary.arrived)} arrived`}
          </>
        }
        drawn={[
          { field: "completed", name: "Completed", colour: "var(--chart-completed)", shape: "bar", compared: true },
          { field: "retried", name: "Retried", colour: "var(--chart-processing)", shape: "bar" },
          { field: "failed", name: "Failed", colour: "var(--chart-failed)", shape: "bar" },
          { field: "arrived", name: "Arrived", colour: "var(--chart-pending)", shape: "line", compared: true },
        ]}
        empty={
          summary.completed + summary.failed + summary.retried + (summary.arrived ?? 0) === 0
            ? "No task arrived or ended in this time."
            : null
        }
      />
      <Chart
        {...common}
        title="Depth"
        unit="tasks that were due and waited, the most of each step"
        kind="count"
        summary={
          summary.depth !== null && (
            <>
              Latest <Figure>{count(summary.depth)}</Figure>, at most <Figure>{count(summary.mostDepth ?? 0)}</Figure>
            </>
          )
        }
        drawn={[{ field: "depth", name: "Waiting", colour: "var(--chart-pending)", shape: "area", compared: true }]}
        empty={summary.depth === null ? NOBODY_LOOKED : null}
      />
      <Chart
        {...common}
        title="Backlog age"
        unit="how long the oldest due task had waited, the most of each step"
        kind="duration"
        summary={
          summary.backlogMs !== null && (
            <>
              Latest <Figure>{duration(summary.backlogMs)}</Figure>, at most{" "}
              <Figure>{duration(summary.mostBacklogMs ?? 0)}</Figure>
            </>
          )
        }
        drawn={[
          {
            field: "backlogMs",
            name: "Oldest due task",
            colour: "var(--chart-pending)",
            shape: "area",
            compared: true,
          },
        ]}
        empty={summary.backlogMs === null ? NOBODY_LOOKED : null}
      />
      <Chart
        {...common}
        title="Time waited"
        unit="from when a task was due to its first start"
        kind="duration"
        summary={
          latestWaited && <Latest values={[latestWaited.waited50, latestWaited.waited95, latestWaited.waited99]} />
        }
        drawn={[
          { field: "waited50", name: "p50", colour: "var(--chart-completed)", shape: "line" },
          {
            field: "waited95",
            name: "p95",
            colour: "var(--chart-pending)",
            shape: "line",
            dash: "6 3",
            compared: true,
          },
          { field: "waited99", name: "p99", colour: "var(--chart-failed)", shape: "line", dash: "2 3" },
        ]}
        empty={latestWaited === null ? "No first attempt ended in this time." : null}
      />
      <Chart
        {...common}
        title="Run time"
        unit="how long attempts took"
        kind="duration"
        summary={latest && <Latest values={[latest.p50, latest.p95, latest.p99]} />}
        drawn={[
          { field: "p50", name: "p50", colour: "var(--chart-completed)", shape: "line" },
          { field: "p95", name: "p95", colour: "var(--chart-pending)", shape: "line", dash: "6 3", compared: true },
          { field: "p99", name: "p99", colour: "var(--chart-failed)", shape: "line", dash: "2 3" },
        ]}
        empty={latest === null ? "No attempt ended in this time." : null}
      />
      <Chart
        {...common}
        title="Failure rate"
        unit="% of what ended"
        kind="share"
        summary={
          summary.attemptsFailedShare !== null && (
            <>
              <Figure>{percent(summary.failedShare)}</Figure> of tasks failed for good,{" "}
              <Figure>{percent(summary.attemptsFailedShare)}</Figure> of attempts failed
            </>
          )
        }
        drawn={[
          { field: "failedShare", name: "Tasks", colour: "var(--chart-failed)", shape: "line", compared: true },
          {
            field: "attemptsFailedShare",
            name: "Attempts",
            colour: "var(--chart-processing)",
            shape: "line",
            dash: "4 3",
          },
        ]}
        empty={summary.attemptsFailedShare === null ? "No attempt ended in this time." : null}
      />
    </div>
  );
});

function Latest({ values: [p50, p95, p99] }: { values: readonly (number | null)[] }) {
  return (
    <>
      Latest: p50 <Figure>{duration(p50 ?? 0)}</Figure> · p95 <Figure>{duration(p95 ?? 0)}</Figure> · p99{" "}
      <Figure>{duration(p99 ?? 0)}</Figure>
    </>
  );
}

function Figure({ children }: { children: ReactNode }) {
  return <span className="font-semibold text-text">{children}</span>;
}
