import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { now } from "@/api/clock";
import type { Stats } from "@/api/model";
import { seriesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { ErrorState } from "@/components/error-state";
import { Select } from "@/components/field";
import { Loading } from "@/components/loading";
import { Segmented } from "@/components/segmented";
import { minutesOf, RANGES, type StatsSearch } from "@/pages/stats/ranges";
import { stepsOf, summaryOf } from "@/pages/stats/steps";
import { StepsTable } from "@/pages/stats/steps-table";
import { escapeText } from "@/text/escape";

/** Loaded only when they are shown: the charts are the largest part of the dashboard. */
const Charts = lazy(() => import("@/pages/stats/charts"));

const route = getRouteApi("/stats");
const VIEWS = [
  { value: "charts", label: "Charts" },
  { value: "table", label: "Table" },
] as const;

/** How it went: the same figures as charts or as a table. */
export function OverTime({ stats }: { stats: Stats | undefined }) {
  const { range = "1h", type, view = "charts" } = route.useSearch();
  const navigate = useNavigate({ from: "/stats" });
  const query = seriesQuery({ minutes: minutesOf(range), ...(type ? { type } : {}) });
  const { data, error, refetch, isPlaceholderData } = useQuery(query);
  const steps = useMemo(() => (data ? stepsOf(data) : []), [data]);
  const summary = useMemo(() => summaryOf(steps, now()), [steps]);

  function change(search: StatsSearch) {
    void navigate({ search: (old) => ({ ...old, ...search }), replace: true, resetScroll: false });
  }

  const types = Object.keys(stats?.byType ?? {}).sort();
  if (type && !types.includes(type)) types.unshift(type);
  return (
    <Card
      title="Over time"
      actions={
        <div className="flex flex-wrap items-center gap-2">
          <Select
            aria-label="Task type"
            value={type ?? ""}
            onChange={(event) => change({ type: event.target.value })}
            className="w-44"
          >
            <option value="">All task types</option>
            {types.map((each) => (
              <option key={each} value={each}>
                {escapeText(each).slice(0, 80)}
              </option>
            ))}
          </Select>
          <Segmented label="Range" value={range} options={RANGES} onChange={(value) => change({ range: value })} />
          <Segmented label="Shown as" value={view} options={VIEWS} onChange={(value) => change({ view: value })} />
        </div>
      }
    >
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} compact />
      ) : !data ? (
        <Loading lines={8} />
      ) : (
        <div className={classes("transition-opacity", isPlaceholderData && "opacity-50")} aria-busy={isPlaceholderData}>
          {view === "table" ? (
            <StepsTable steps={steps} />
          ) : (
            <Suspense fallback={<Loading lines={8} />}>
              <Charts steps={steps} summary={summary} stepMinutes={data.stepMinutes} />
            </Suspense>
          )}
        </div>
      )}
    </Card>
  );
}
