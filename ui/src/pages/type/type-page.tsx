import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { ArrowLeft, ChartColumn, ListChecks } from "lucide-react";
import { useState } from "react";
import { ApiError } from "@/api/errors";
import type { TaskType } from "@/api/model";
import { seriesQuery, typeQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { Segmented } from "@/components/segmented";
import { useSession } from "@/hooks/use-session";
import { minutesOf, RANGES } from "@/pages/stats/ranges";
import { qualified } from "@/pages/tasks/search/qualified";
import { TaskActionsProvider } from "@/pages/tasks/task-actions";
import { FailureGroups } from "@/pages/type/failure-groups";
import { Histogram } from "@/pages/type/histogram";
import { TypeAudit } from "@/pages/type/type-audit";
import { TypeFigures } from "@/pages/type/type-figures";
import { LatestTasks, SlowestTasks } from "@/pages/type/type-tasks";
import { TypeWorkers } from "@/pages/type/type-workers";
import { LimitsDialog } from "@/pages/types/limits-dialog";
import { Limits, Pause, TypeState } from "@/pages/types/type-parts";

const route = getRouteApi("/types/$type");
const OPTIONS = RANGES.map(({ value, label }) => ({ value, label }));

/** All about one type. */
export function TypePage() {
  const { type: name } = route.useParams();
  const { data: type, error, refetch } = useQuery(typeQuery(name));
  const unknown = error instanceof ApiError && error.code === "type_not_found";
  return (
    <>
      <Link
        to="/types"
        className="mb-2 inline-flex items-center gap-1 text-dim text-xs hover:text-text hover:underline"
      >
        <ArrowLeft className="size-3.5" aria-hidden="true" />
        All types
      </Link>
      {type ? (
        <TaskActionsProvider>
          <Known key={name} type={type} />
        </TaskActionsProvider>
      ) : (
        <>
          <PageHeader title={name} />
          {unknown ? (
            <Card>
              <EmptyState title="Nothing is known of this type">
                It has no tasks and no limits, no live worker handles it, and the server does not know it.
              </EmptyState>
            </Card>
          ) : error ? (
            <ErrorState error={error} onRetry={refetch} />
          ) : (
            <Loading lines={8} />
          )}
        </>
      )}
    </>
  );
}

const LOOK =
  "inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-raised";

function Known({ type }: { type: TaskType }) {
  const { mayOperate } = useSession();
  const { range = "24h" } = route.useSearch();
  const navigate = useNavigate({ from: "/types/$type" });
  const [limits, setLimits] = useState(false);
  const query = seriesQuery({ minutes: minutesOf(range), type: type.type });
  const { data: series, error, refetch } = useQuery(query);
  return (
    <>
      <PageHeader
        title={type.type}
        actions={
          <>
            <Link to="/tasks" search={{ q: qualified({ type: type.type }) }} className={LOOK}>
              <ListChecks className="size-4" aria-hidden="true" />
              Its tasks
            </Link>
            <Link to="/stats" search={{ type: type.type }} className={LOOK}>
              <ChartColumn className="size-4" aria-hidden="true" />
              Over time
            </Link>
          </>
        }
      >
        <TypeState type={type} />
      </PageHeader>
      <div className="space-y-4">
        <Card
          title="Figures"
          actions={
            <Segmented
              label="Range"
              value={range}
              options={OPTIONS}
              onChange={(value) => void navigate({ search: { range: value }, replace: true, resetScroll: false })}
            />
          }
        >
          {error && !series ? (
            <ErrorState error={error} onRetry={refetch} compact />
          ) : (
            <TypeFigures type={type} series={series} />
          )}
        </Card>
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <Histogram title="Run time" what="attempt" times={series?.runTime}>
            How long attempts took.
          </Histogram>
          <Histogram title="Time waited" what="task" times={series?.waited}>
            From when a task was due to its first start.
          </Histogram>
        </div>
        <FailureGroups type={type.type} />
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <SlowestTasks type={type.type} />
          <LatestTasks type={type.type} />
        </div>
        <div className="grid items-start gap-4 lg:grid-cols-2">
          <TypeWorkers type={type.type} />
          <div className="min-w-0 space-y-4">
            <Card title="Limits and pause">
              <div className="space-y-3">
                <Limits type={type} mayOperate={mayOperate} onLimits={() => setLimits(true)} none="No limits." />
                <div className="flex items-center justify-between gap-2">
                  <span>{type.paused ? "Paused: no worker starts one." : "Not paused."}</span>
                  {mayOperate && <Pause type={type} mayOperate />}
                </div>
              </div>
            </Card>
            <TypeAudit type={type.type} />
          </div>
        </div>
      </div>
      {limits && <LimitsDialog type={type} onClose={() => setLimits(false)} />}
    </>
  );
}
