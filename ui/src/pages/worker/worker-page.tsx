import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ArrowLeft, Server } from "lucide-react";
import { ApiError } from "@/api/errors";
import type { WorkerDetail } from "@/api/model";
import { workerQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { CopyButton } from "@/components/copy-button";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";
import { DrainControl } from "@/pages/worker/drain-control";
import { RunsNow } from "@/pages/worker/runs-now";
import { WorkerFacts } from "@/pages/worker/worker-facts";
import { WorkerLink } from "@/pages/workers/worker-parts";
import { WorkerStateBadge } from "@/pages/workers/worker-state-badge";

const route = getRouteApi("/workers/$workerId");

export function WorkerPage() {
  const { workerId } = route.useParams();
  const { data: worker, error, refetch } = useQuery(workerQuery(workerId));
  const gone = error instanceof ApiError && error.code === "worker_not_found";
  return (
    <>
      <Link
        to="/workers"
        className="mb-2 inline-flex items-center gap-1 text-dim text-xs hover:text-text hover:underline"
      >
        <ArrowLeft className="size-3.5" aria-hidden="true" />
        All workers
      </Link>
      <PageHeader
        title={workerId}
        badge={
          <>
            {worker && <WorkerStateBadge state={worker.state} />}
            <CopyButton text={workerId} label="Copy worker ID" />
          </>
        }
        actions={worker && <DrainControl worker={worker} />}
      >
        {worker && <Drain worker={worker} />}
      </PageHeader>
      {gone ? (
        <Card>
          <EmptyState icon={Server} title="This worker is not known">
            Workers that ended are forgotten after a day.
          </EmptyState>
        </Card>
      ) : error && !worker ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !worker ? (
        <Loading lines={8} />
      ) : (
        <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
          <div className="min-w-0 space-y-4">
            <RunsNow worker={worker} />
            {worker.earlier.length > 0 && <Earlier worker={worker} />}
          </div>
          <WorkerFacts worker={worker} />
        </div>
      )}
    </>
  );
}

/** Somebody asked it to end, and it has not yet. */
function Drain({ worker }: { worker: WorkerDetail }) {
  if (worker.drainRequestedAt === null) return null;
  return (
    <span role="status">
      <SafeText text={worker.drainRequestedBy ?? ""} max={60} className="font-medium" /> asked it to drain{" "}
      <RelativeTime at={worker.drainRequestedAt} />
      {worker.state === "stopped" ? "." : ": it takes nothing more, finishes what it runs, and ends."}
    </span>
  );
}

/** What ran in its place before. */
function Earlier({ worker }: { worker: WorkerDetail }) {
  return (
    <Card title="Before it" flush>
      <ul aria-label="Earlier workers" className="divide-y">
        {worker.earlier.map((each) => (
          <li key={each.id} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
            <WorkerStateBadge state={each.state} />
            <span className="min-w-0 font-mono text-xs">
              <WorkerLink id={each.id} className="break-all" />
            </span>
            <span className="text-dim text-xs">
              started <RelativeTime at={each.startedAt} />, ended <RelativeTime at={each.stoppedAt ?? each.seenAt} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
