import { useQuery } from "@tanstack/react-query";
import { workersQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { SafeText } from "@/components/safe-text";
import { Running } from "@/pages/workers/worker-parts";
import { inOrder } from "@/pages/workers/worker-state";
import { WorkerStateBadge } from "@/pages/workers/worker-state-badge";

const SHOWN = 20;

/** Those that run the type. */
export function TypeWorkers({ type }: { type: string }) {
  const { data, error, refetch } = useQuery(workersQuery());
  const workers = inOrder(data?.workers.filter(({ types }) => types.includes(type)) ?? []);
  return (
    <Card flush title="Workers that run it">
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : workers.length === 0 ? (
        <p className="px-4 py-8 text-center text-dim">No live worker handles this type.</p>
      ) : (
        <ul aria-label="Workers that run it" className="divide-y">
          {workers.slice(0, SHOWN).map((worker) => (
            <li key={worker.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
              <WorkerStateBadge state={worker.state} />
              <span className="min-w-0 grow truncate">
                <SafeText text={worker.hostname} max={60} />
                <span className="text-dim"> · pid {worker.pid}</span>
                {worker.version && (
                  <span className="text-dim">
                    {" "}
                    · version <SafeText text={worker.version} max={40} />
                  </span>
                )}
              </span>
              <Running worker={worker} />
            </li>
          ))}
          {workers.length > SHOWN && (
            <li className="px-4 py-2 text-dim">{workers.length - SHOWN} more on the page Workers.</li>
          )}
        </ul>
      )}
    </Card>
  );
}
