import { useQuery } from "@tanstack/react-query";
import { Server } from "lucide-react";
import { workersQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { RelativeTime } from "@/components/times";

export function WorkersPage() {
  const { data, error, refetch } = useQuery(workersQuery);
  return (
    <>
      <PageHeader title="Workers" />
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : data.workers.length === 0 ? (
          <EmptyState icon={Server} title="No worker has been seen" command="tasklib worker app.tasks">
            Tasks wait until a worker starts. Name the module that defines them:
          </EmptyState>
        ) : (
          <Table label="Workers">
            <thead>
              <tr>
                <HeaderCell>Worker</HeaderCell>
                <HeaderCell>Host</HeaderCell>
                <HeaderCell>Running</HeaderCell>
                <HeaderCell>Heartbeat</HeaderCell>
                <HeaderCell>Started</HeaderCell>
              </tr>
            </thead>
            <tbody>
              {data.workers.map((worker) => (
                <Row key={worker.id}>
                  <Cell>
                    <SafeText text={worker.id} max={80} />
                  </Cell>
                  <Cell>
                    <SafeText text={worker.hostname} max={60} />
                  </Cell>
                  <Cell>
                    {worker.running}/{worker.concurrency}
                  </Cell>
                  <Cell>
                    <RelativeTime at={worker.seenAt} />
                  </Cell>
                  <Cell>
                    <RelativeTime at={worker.startedAt} />
                  </Cell>
                </Row>
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </>
  );
}
