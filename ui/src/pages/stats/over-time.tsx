import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { now } from "@/api/clock";
import type { Stats } from "@/api/model";
import { seriesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { ErrorState } from "@/components/error-state";
import { Checkbox, Select } from "@/components/field";
import { Loading } from "@/components/loading";
import { Segmented } from "@/components/segmented";
import { Deploys, VerdictLine } from "@/pages/stats/flow";
import { marksOf } from "@/pages/stats/marks";
import { EARLIER, type Earlier, earlierWindow, type StatsSearch, windowOf } from "@/pages/stats/ranges";
import { stepsOf, summaryOf } from "@/pages/stats/steps";
import { StepsTable } from "@/pages/stats/steps-table";
import { WindowChoice } from "@/pages/stats/window-choice";
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
  const search: StatsSearch = route.useSearch();
  const { type, view = "charts", compare, scale } = search;
  const navigate = useNavigate({ from: "/stats" });
  const window = windowOf(search, now());
  const ofType = type ? { type } : {};
  const { data, error, refetch, isPlaceholderData } = useQuery(seriesQuery({ ...window, ...ofType }));
  const earlier = useQuery({
    ...seriesQuery({ ...earlierWindow(window, compare ?? "day", now()), ...ofType }),
    enabled: compare !== undefined,
  });
  const laidOver = compare && !earlier.isPlaceholderData ? earlier.data : undefined;
  const steps = useMemo(
    () => (data ? stepsOf(data, now(), laidOver && compare && { series: laidOver, ms: EARLIER[compare].ms }) : []),
    [data, laidOver, compare],
  );
  const summary = useMemo(() => summaryOf(steps, now()), [steps]);
  const marks = useMemo(() => (data ? marksOf(data) : []), [data]);

  function change(given: { [Field in keyof StatsSearch]?: StatsSearch[Field] | undefined }) {
    void navigate({
      search: (old) => ({ ...old, ...given }) as StatsSearch,
      replace: true,
      resetScroll: false,
    });
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
          <WindowChoice search={search} onChange={change} />
          <Select
            aria-label="Compared with"
            value={compare ?? ""}
            onChange={({ target }) => change({ compare: target.value === "" ? undefined : (target.value as Earlier) })}
            className="w-44"
          >
            <option value="">No comparison</option>
            {Object.entries(EARLIER).map(([value, { label }]) => (
              <option key={value} value={value}>
                With {label}
              </option>
            ))}
          </Select>
          {view === "charts" && (
            // biome-ignore lint/a11y/noLabelWithoutControl: the check-box is the control
            <label className="flex min-h-8 items-center gap-2 px-1 text-xs">
              <Checkbox
                checked={scale === "log"}
                onChange={({ target }) => change({ scale: target.checked ? "log" : undefined })}
              />
              Log scale
            </label>
          )}
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
          <div className="mb-4 space-y-1 empty:hidden">
            <VerdictLine summary={summary} />
            <Deploys marks={marks} />
            {earlier.error && compare && <ErrorState error={earlier.error} onRetry={earlier.refetch} compact />}
          </div>
          {view === "table" ? (
            <StepsTable steps={steps} earlier={compare ? EARLIER[compare].label : null} />
          ) : (
            <Suspense fallback={<Loading lines={8} />}>
              <Charts
                steps={steps}
                summary={summary}
                stepMinutes={data.stepMinutes}
                earlier={compare ? EARLIER[compare].label : null}
                log={scale === "log"}
                marks={marks}
              />
            </Suspense>
          )}
        </div>
      )}
    </Card>
  );
}
