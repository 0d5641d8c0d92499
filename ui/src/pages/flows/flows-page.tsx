import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Workflow } from "lucide-react";
import { memo } from "react";
import type { Flow } from "@/api/model";
import { flowsQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { RelativeTime } from "@/components/times";
import { CountsWords } from "@/pages/flow/counts-words";
import { ProgressBar } from "@/pages/flow/progress-bar";
import { shortId } from "@/pages/tasks/cells";
import { plural } from "@/text/number";

const route = getRouteApi("/flows");

export function FlowsPage() {
  const { cursor } = route.useSearch();
  const { data, error, refetch } = useQuery(flowsQuery(cursor));
  return (
    <>
      <PageHeader title="Flows">Tasks that wait for each other, newest first.</PageHeader>
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : data.flows.length === 0 ? (
          <EmptyState icon={Workflow} title={cursor ? "There are no older flows" : "There are no flows yet"}>
            In a flow tasks wait for others, and get their results. Code makes one with{" "}
            <code>with flow("import 42"):</code>
          </EmptyState>
        ) : (
          <ul aria-label="Flows" className="divide-y">
            {data.flows.map((flow) => (
              <FlowItem key={flow.id} flow={flow} />
            ))}
          </ul>
        )}
      </Card>
      {(cursor || data?.nextCursor) && (
        <nav aria-label="More flows" className="mt-3 flex justify-between">
          {cursor ? (
            <Link to="/flows" search={{}} className="text-accent hover:underline">
              First page
            </Link>
          ) : (
            <span />
          )}
          {data?.nextCursor && (
            <Link to="/flows" search={{ cursor: data.nextCursor }} className="text-accent hover:underline">
              Next page
            </Link>
          )}
        </nav>
      )}
    </>
  );
}

/** The same on every screen: in columns where there is room. */
const FlowItem = memo(function FlowItem({ flow }: { flow: Flow }) {
  return (
    <li
      data-flow={flow.id}
      className="grid gap-x-6 gap-y-2 px-4 py-3 md:grid-cols-[minmax(0,2fr)_7.5rem_minmax(0,3fr)] md:items-center"
    >
      <div className="min-w-0">
        <Link
          to="/flows/$flowId"
          params={{ flowId: flow.id }}
          className="wrap-anywhere font-medium text-accent hover:underline"
        >
          {flow.name === null ? `Flow ${shortId(flow.id)}` : <SafeText text={flow.name} max={120} />}
        </Link>
        <p className="text-dim text-xs">
          {plural(flow.total, "task")}, submitted <RelativeTime at={flow.createdAt} />
        </p>
      </div>
      <span>
        <StatusBadge status={flow.status} />
      </span>
      <div className="min-w-0 space-y-1 text-xs">
        <CountsWords flowId={flow.id} counts={flow.counts} />
        <ProgressBar counts={flow.counts} />
      </div>
    </li>
  );
});
