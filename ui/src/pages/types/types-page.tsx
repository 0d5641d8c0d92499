import { useQuery } from "@tanstack/react-query";
import { Shapes } from "lucide-react";
import { typesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { count } from "@/text/number";

export function TypesPage() {
  const { data, error, refetch } = useQuery(typesQuery);
  return (
    <>
      <PageHeader title="Types" />
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : data.types.length === 0 ? (
          <EmptyState icon={Shapes} title="No task types are known yet" command="tasklib serve app.tasks">
            A type shows up with its first task, with a worker that handles it, or when the server loads its module.
          </EmptyState>
        ) : (
          <Table label="Task types">
            <thead>
              <tr>
                <HeaderCell>Type</HeaderCell>
                <HeaderCell>Pending</HeaderCell>
                <HeaderCell>Processing</HeaderCell>
                <HeaderCell>Failed</HeaderCell>
                <HeaderCell>Handled by</HeaderCell>
              </tr>
            </thead>
            <tbody>
              {data.types.map((type) => (
                <Row key={type.type}>
                  <Cell>
                    <SafeText text={type.type} max={80} />
                  </Cell>
                  <Cell>{count(type.counts.pending)}</Cell>
                  <Cell>{count(type.counts.processing)}</Cell>
                  <Cell>{count(type.counts.failed)}</Cell>
                  <Cell>{type.handled ? "a live worker" : "no live worker"}</Cell>
                </Row>
              ))}
            </tbody>
          </Table>
        )}
      </Card>
    </>
  );
}
