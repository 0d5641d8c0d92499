import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Worker } from "@/api/model";
import { tasksQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { SafeText } from "@/components/safe-text";
import { Duration } from "@/components/times";
import { TasksWith } from "@/pages/task/list-link";

const SHOWN = 100;

/** The tasks that it holds, longest first: one that hangs is at the top. */
export function RunsNow({ worker }: { worker: Worker }) {
  const { data, error, refetch } = useQuery(tasksQuery({ worker: worker.id, status: ["processing"], limit: SHOWN }));
  const tasks = data?.tasks.toSorted((one, other) =>
    (one.lastAttemptAt ?? "").localeCompare(other.lastAttemptAt ?? ""),
  );
  return (
    <Card title="Runs now" flush>
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} compact />
      ) : !tasks ? (
        <Loading />
      ) : tasks.length === 0 ? (
        <p className="px-4 py-6 text-dim">Nothing at the moment.</p>
      ) : (
        <ul aria-label="Tasks it runs" className="divide-y">
          {tasks.map((task) => (
            <li key={task.id} className="flex flex-wrap items-baseline justify-between gap-x-3 gap-y-1 px-4 py-2">
              <Link
                to="/tasks/$taskId"
                params={{ taskId: task.id }}
                className="min-w-0 break-words font-medium text-accent hover:underline"
              >
                <SafeText text={task.type} max={120} />
              </Link>
              <span className="text-dim text-xs">
                attempt {task.attempts}
                {task.maxAttempts ? ` of ${task.maxAttempts}` : ""} · for <Duration from={task.lastAttemptAt} />
              </span>
              <span className="w-full break-all font-mono text-dim text-xs">{task.id}</span>
            </li>
          ))}
        </ul>
      )}
      {data && (data.total > SHOWN || data.totalCapped) && (
        <p className="border-t px-4 py-2">
          <TasksWith q={{ worker: worker.id, status: "processing" }}>All that it runs</TasksWith>
        </p>
      )}
    </Card>
  );
}
