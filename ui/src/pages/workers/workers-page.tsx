import { useQuery } from "@tanstack/react-query";
import { Server } from "lucide-react";
import { useState } from "react";
import { workersQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Checkbox } from "@/components/field";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { HeaderCell, Table } from "@/components/table";
import { useMedia } from "@/hooks/use-media";
import { WorkerCard } from "@/pages/workers/worker-card";
import { WorkerRow } from "@/pages/workers/worker-row";
import { fleetOf, inOrder } from "@/pages/workers/worker-state";

export function WorkersPage() {
  const [all, setAll] = useState(false);
  const { data, error, refetch } = useQuery(workersQuery(all ? { all } : {}));
  const narrow = useMedia("(width < 80rem)");
  return (
    <>
      <PageHeader
        title="Workers"
        actions={
          // biome-ignore lint/a11y/noLabelWithoutControl: the check-box is the control
          <label className="flex min-h-8 items-center gap-2">
            <Checkbox checked={all} onChange={() => setAll(!all)} />
            Show stopped
          </label>
        }
      >
        {data && fleetOf(data.workers)}
      </PageHeader>
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : data.workers.length === 0 ? (
          <EmptyState icon={Server} title="No worker is running" command="tasklib worker app.tasks">
            Tasks wait until a worker starts. Name the module that defines them:
          </EmptyState>
        ) : narrow ? (
          <ul aria-label="Workers" className="divide-y">
            {inOrder(data.workers).map((worker) => (
              <WorkerCard key={worker.id} worker={worker} />
            ))}
          </ul>
        ) : (
          <Table label="Workers">
            <thead>
              <tr>
                <HeaderCell>State</HeaderCell>
                <HeaderCell>Heartbeat</HeaderCell>
                <HeaderCell>Running</HeaderCell>
                <HeaderCell>Worker</HeaderCell>
                <HeaderCell>Host</HeaderCell>
                <HeaderCell>Queues</HeaderCell>
                <HeaderCell>Types</HeaderCell>
                <HeaderCell>Started</HeaderCell>
              </tr>
            </thead>
            <tbody>
              {inOrder(data.workers).map((worker) => (
                <WorkerRow key={worker.id} worker={worker} />
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </>
  );
}
