import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Task } from "@/api/model";
import { tasksQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { StatusBadge } from "@/components/status-badge";
import { RelativeTime } from "@/components/times";
import { useLive } from "@/hooks/use-live";
import { IdCell } from "@/pages/tasks/cells";
import { READ_AGAIN_MS } from "@/pages/type/failure-groups";
import { length } from "@/pages/type/type-figures";

const SHOWN = 10;

export function SlowestTasks({ type }: { type: string }) {
  const { state } = useLive();
  const { data, error, refetch } = useQuery({
    ...tasksQuery({ type: [type], finished: true, sort: "duration", limit: SHOWN }),
    refetchInterval: state === "paused" ? false : READ_AGAIN_MS,
  });
  return (
    <Card flush title="Slowest tasks">
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : (
        <Tasks
          label="Slowest tasks"
          tasks={data.tasks}
          empty="None has ended yet."
          note="By their latest attempt, among the newest 10,000 that are over."
        />
      )}
    </Card>
  );
}

export function LatestTasks({ type }: { type: string }) {
  const { data, error, refetch } = useQuery(tasksQuery({ type: [type], limit: SHOWN }));
  return (
    <Card flush title="Latest tasks">
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : (
        <Tasks label="Latest tasks" tasks={data.tasks} empty="There is none." note="By when they were submitted." />
      )}
    </Card>
  );
}

interface TasksProps {
  label: string;
  tasks: readonly Task[];
  note: ReactNode;
  empty: string;
}

function Tasks({ label, tasks, note, empty }: TasksProps) {
  if (tasks.length === 0) return <p className="px-4 py-8 text-center text-dim">{empty}</p>;
  return (
    <>
      <p className="border-b px-4 py-2 text-dim text-xs">{note}</p>
      <ul aria-label={label} className="divide-y">
        {tasks.map((task) => (
          <li key={task.id} className="flex flex-wrap items-center gap-x-1.5 px-3 py-1 sm:gap-x-3 sm:px-4">
            <IdCell task={task} />
            <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt ?? null} />
            <RelativeTime at={task.completedAt ?? task.createdAt} className="grow whitespace-nowrap text-dim text-xs" />
            <span className="whitespace-nowrap font-medium" data-ran={task.runMs ?? ""}>
              {task.runMs == null ? "" : length(task.runMs)}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
