import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { now } from "@/api/clock";
import { ApiError } from "@/api/errors";
import type { TaskDetail } from "@/api/model";
import { auditQuery, taskQuery } from "@/api/queries";
import { lastList } from "@/app/last-list";
import { Card } from "@/components/card";
import { copyText } from "@/components/copy-button";
import { ErrorState } from "@/components/error-state";
import { JsonViewer } from "@/components/json-viewer";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { showError, showToast } from "@/components/toast";
import { useHotkeys } from "@/hooks/use-hotkeys";
import { useLive } from "@/hooks/use-live";
import { Details } from "@/pages/task/details";
import { ErrorCard } from "@/pages/task/error-card";
import { FlowCard } from "@/pages/task/flow-card";
import { readAgainIn } from "@/pages/task/freshness";
import { Gone } from "@/pages/task/gone";
import { BackToList } from "@/pages/task/list-link";
import { StopNotice } from "@/pages/task/stop-notice";
import { TaskHeader } from "@/pages/task/task-header";
import { TimelineCard } from "@/pages/task/timeline-card";
import { WaitingPanel } from "@/pages/task/waiting-panel";
import { isId } from "@/pages/tasks/search/filter";

const route = getRouteApi("/tasks/$taskId");

export function TaskPage() {
  const { taskId } = route.useParams();
  return isId(taskId) ? <TaskWithId taskId={taskId} /> : <Gone taskId={taskId} />;
}

function TaskWithId({ taskId }: { taskId: string }) {
  const { state: live } = useLive();
  const {
    data: task,
    error,
    refetch,
  } = useQuery({
    ...taskQuery(taskId),
    refetchInterval: ({ state }) => live !== "paused" && state.status === "success" && readAgainIn(state.data, now()),
  });
  useTaskKeys(taskId);
  if (isGone(error)) return <Gone taskId={taskId} />;
  if (task) return <Task key={task.id} task={task} problem={error} onRetry={refetch} />;
  return (
    <>
      <BackToList />
      <PageHeader title="Task" />
      {error ? <ErrorState error={error} onRetry={refetch} /> : <Loading lines={8} />}
    </>
  );
}

function Task({ task, problem, onRetry }: { task: TaskDetail; problem: Error | null; onRetry: () => void }) {
  const audit = useQuery(auditQuery({ taskId: task.id }));
  return (
    <>
      <TaskHeader task={task} />
      {problem && <ErrorState error={problem} onRetry={onRetry} />}
      {/* In the order in which they are wanted on a phone; where there is room, what is second goes to the side. */}
      <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_22rem] lg:grid-rows-[auto_1fr]">
        <div className="min-w-0 space-y-4 empty:hidden">
          <WaitingPanel task={task} />
          <StopNotice task={task} />
          {task.error !== null && <ErrorCard task={task} error={task.error} />}
          {task.status === "completed" && <Json title="Result" value={task.result} />}
        </div>
        <div className="min-w-0 space-y-4 lg:col-start-2 lg:row-span-2 lg:row-start-1">
          <FlowCard task={task} />
          <Details task={task} />
          <TimelineCard task={task} audit={audit.data?.entries ?? []} incomplete={audit.isError} />
        </div>
        <div className="min-w-0 space-y-4 lg:col-start-1">
          <Json title="Payload" value={task.payload} />
        </div>
      </div>
    </>
  );
}

function Json({ title, value }: { title: string; value: unknown }) {
  return (
    <JsonViewer
      value={value}
      label={title.toLowerCase()}
      frame={(tools, tree) => (
        <Card title={title} actions={tools}>
          {tree}
        </Card>
      )}
    />
  );
}

function useTaskKeys(taskId: string): void {
  const navigate = useNavigate();
  useHotkeys([
    { key: "Escape", label: "Back to the tasks", run: () => void navigate({ to: "/tasks", search: lastList() }) },
    {
      key: "c",
      label: "Copy the task's ID",
      run: () => void copyText(taskId).then(() => showToast("The task's ID is copied."), showError),
    },
  ]);
}

function isGone(error: Error | null): boolean {
  return error instanceof ApiError && error.code === "task_not_found";
}
