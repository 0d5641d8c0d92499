import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ArrowLeft, Workflow } from "lucide-react";
import { ApiError } from "@/api/errors";
import type { FlowDetail } from "@/api/model";
import { flowQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { CopyButton } from "@/components/copy-button";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { StatusBadge } from "@/components/status-badge";
import { RelativeTime } from "@/components/times";
import { useLive } from "@/hooks/use-live";
import { useMedia } from "@/hooks/use-media";
import { CountsWords } from "@/pages/flow/counts-words";
import { Drawing } from "@/pages/flow/drawing";
import { FlowActions } from "@/pages/flow/flow-actions";
import { flowTasks } from "@/pages/flow/node-link";
import { NodesTable } from "@/pages/flow/nodes-table";
import { ProgressBar } from "@/pages/flow/progress-bar";
import { isId } from "@/pages/tasks/search/filter";
import { TaskActionsProvider } from "@/pages/tasks/task-actions";
import { count, plural } from "@/text/number";

const route = getRouteApi("/flows/$flowId");

/** All tasks are read for it: large ones, and those that are over, less often. */
const SOON_MS = 1000;
const LATER_MS = 5000;
const LARGE = 1000;

export function FlowPage() {
  const { flowId } = route.useParams();
  return (
    <>
      <Link
        to="/flows"
        className="mb-2 inline-flex items-center gap-1 text-dim text-xs hover:text-text hover:underline"
      >
        <ArrowLeft className="size-3.5" aria-hidden="true" />
        All flows
      </Link>
      {isId(flowId) ? <FlowWithId key={flowId} flowId={flowId} /> : <NoFlow />}
    </>
  );
}

function FlowWithId({ flowId }: { flowId: string }) {
  const { state: live } = useLive();
  const { data, error, refetch } = useQuery({
    ...flowQuery(flowId),
    refetchInterval: ({ state }) => {
      if (live === "paused" || state.status !== "success" || !state.data) return false;
      return state.data.status === "running" && state.data.total <= LARGE ? SOON_MS : LATER_MS;
    },
  });
  if (error instanceof ApiError && error.status === 404) return <NoFlow />;
  if (data) {
    return (
      <TaskActionsProvider>
        <Flow flow={data} problem={error} onRetry={refetch} />
      </TaskActionsProvider>
    );
  }
  return (
    <>
      <PageHeader title="Flow" />
      {error ? <ErrorState error={error} onRetry={refetch} /> : <Loading lines={8} />}
    </>
  );
}

function Flow({ flow, problem, onRetry }: { flow: FlowDetail; problem: Error | null; onRetry: () => void }) {
  const phone = useMedia("(width < 48rem)");
  const { nodes, truncated } = flow.graph;
  return (
    <>
      <PageHeader
        title={flow.name ?? "Flow without a name"}
        badge={<StatusBadge status={flow.status} />}
        actions={<FlowActions flow={flow} />}
      >
        <span className="flex flex-wrap items-center gap-x-1">
          <span className="min-w-0 break-all font-mono text-xs">{flow.id}</span>
          <CopyButton text={flow.id} label="Copy ID" />
          <span>
            submitted <RelativeTime at={flow.createdAt} />
          </span>
        </span>
      </PageHeader>
      {problem && <ErrorState error={problem} onRetry={onRetry} />}
      <div className="space-y-4">
        <Card>
          <div className="space-y-2">
            <p className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
              <CountsWords flowId={flow.id} counts={flow.counts} />
              <Link {...flowTasks(flow.id)} className="text-accent hover:underline">
                See {flow.total === 1 ? "its one task" : `all ${plural(flow.total, "task")}`}
              </Link>
            </p>
            <ProgressBar counts={flow.counts} />
            {truncated && (
              <p className="text-dim text-xs">
                Below are its first {count(nodes.reduce((sum, { total }) => sum + total, 0))} tasks; the counts above
                are of all.
              </p>
            )}
          </div>
        </Card>
        {!phone && nodes.length > 0 && <Drawing flowId={flow.id} nodes={nodes} />}
        {nodes.length > 0 && <NodesTable flowId={flow.id} nodes={nodes} />}
      </div>
    </>
  );
}

function NoFlow() {
  return (
    <>
      <PageHeader title="No such flow" />
      <Card>
        <div role="alert">
          <EmptyState icon={Workflow} title="There is no flow with this ID">
            Its tasks may have been deleted, or cleaned up by age.
          </EmptyState>
        </div>
      </Card>
    </>
  );
}
