import { useQuery } from "@tanstack/react-query";
import { statsQuery } from "@/api/queries";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { CleanUp } from "@/pages/stats/clean-up";
import { LatestFailures } from "@/pages/stats/latest-failures";
import { OverTime } from "@/pages/stats/over-time";
import { StatusCards } from "@/pages/stats/status-cards";
import { TypesBars } from "@/pages/stats/types-bars";

export function StatsPage() {
  const { data: stats, error, refetch } = useQuery(statsQuery);
  return (
    <>
      <PageHeader title="Stats" actions={<CleanUp />} />
      <div className="space-y-4">
        {error && !stats ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !stats ? (
          <Loading />
        ) : (
          <StatusCards stats={stats} />
        )}
        <OverTime stats={stats} />
        {stats && (
          <div className="grid items-start gap-4 xl:grid-cols-2">
            {Object.keys(stats.byType).length === 0 ? (
              <section className="rounded-lg border bg-surface">
                <EmptyState title="No tasks yet" command="tasklib demo">
                  Figures appear with the first task. To see them with made-up tasks, run the demo.
                </EmptyState>
              </section>
            ) : (
              <TypesBars stats={stats} />
            )}
            <LatestFailures />
          </div>
        )}
      </div>
    </>
  );
}
