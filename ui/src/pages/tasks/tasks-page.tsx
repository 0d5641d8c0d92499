import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { tasksQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { Duration, RelativeTime } from "@/components/times";
import { count } from "@/text/number";

const route = getRouteApi("/tasks");

export function TasksPage() {
  const { cursor } = route.useSearch();
  const { data, error, refetch } = useQuery(tasksQuery({ limit: 50, ...(cursor ? { cursor } : {}) }));
  return (
    <>
      <PageHeader title="Tasks">{data && `${count(data.total)}${data.totalCapped ? "+" : ""} in all`}</PageHeader>
      <Card flush>
        {error ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading lines={8} />
        ) : data.tasks.length === 0 ? (
          <EmptyState icon={Inbox} title="No tasks yet" command="tasklib demo">
            Tasks appear here as soon as your code submits one. To see it with made-up tasks, run the demo.
          </EmptyState>
        ) : (
          <Table label="Tasks">
            <thead>
              <tr>
                <HeaderCell>ID</HeaderCell>
                <HeaderCell>Type</HeaderCell>
                <HeaderCell>Status</HeaderCell>
                <HeaderCell>Attempts</HeaderCell>
                <HeaderCell>Created</HeaderCell>
                <HeaderCell>Duration</HeaderCell>
                <HeaderCell>Worker</HeaderCell>
              </tr>
            </thead>
            <tbody>
              {data.tasks.map((task) => (
                <Row key={task.id}>
                  <Cell className="font-mono text-xs">
                    <Link to="/tasks/$taskId" params={{ taskId: task.id }} className="text-accent hover:underline">
                      {task.id.slice(-12)}
                    </Link>
                  </Cell>
                  <Cell>
                    <SafeText text={task.type} max={60} />
                  </Cell>
                  <Cell>
                    <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt} />
                  </Cell>
                  <Cell>
                    {task.attempts}/{task.maxAttempts || "∞"}
                  </Cell>
                  <Cell>
                    <RelativeTime at={task.createdAt} />
                  </Cell>
                  <Cell>
                    <Duration from={task.lastAttemptAt} to={task.status === "processing" ? null : task.updatedAt} />
                  </Cell>
                  <Cell>{task.workerId && <SafeText text={task.workerId} max={40} />}</Cell>
                </Row>
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </>
  );
}
