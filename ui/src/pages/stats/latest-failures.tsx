import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, RotateCw } from "lucide-react";
import { memo } from "react";
import { retryTask } from "@/api/actions";
import type { Task } from "@/api/model";
import { tasksQuery } from "@/api/queries";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { RelativeTime } from "@/components/times";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";
import { qualified } from "@/pages/tasks/search/qualified";
import { escapeText } from "@/text/escape";
import { lastLine } from "@/text/last-line";

const SHOWN = 10;

export function LatestFailures() {
  const { data, error, refetch } = useQuery(
    tasksQuery({ status: ["failed"], sort: "ended", limit: SHOWN, fields: ["error"] }),
  );
  return (
    <Card
      flush
      title="Latest failures"
      actions={
        <Link
          to="/tasks"
          search={{ q: qualified({ status: "failed" }) }}
          className="text-accent text-xs hover:underline"
        >
          All failed tasks
        </Link>
      }
    >
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : data.tasks.length === 0 ? (
        <EmptyState icon={CircleCheck} title="No failed tasks">
          Tasks that fail for good show up here, with the error's last line.
        </EmptyState>
      ) : (
        <ul aria-label="Latest failures" className="divide-y">
          {data.tasks.map((task) => (
            <Failure key={task.id} task={task} />
          ))}
        </ul>
      )}
    </Card>
  );
}

const Failure = memo(function Failure({ task }: { task: Task }) {
  const { mayOperate } = useSession();
  const retry = useAction(retryTask, "toast", () => `${escapeText(task.type).slice(0, 60)} will be tried again.`);
  return (
    <li className="flex items-center gap-3 px-4 py-2">
      <div className="min-w-0 grow">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            className="max-w-full truncate font-medium text-accent hover:underline"
          >
            <SafeText text={task.type} max={80} />
          </Link>
          <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt ?? null} />
          <RelativeTime at={task.completedAt ?? task.updatedAt} className="text-dim text-xs" />
        </div>
        <SafeText as="p" text={lastLine(task.error)} max={300} className="truncate font-mono text-dim text-xs" />
      </div>
      {mayOperate && (
        <Button
          size="small"
          aria-label={`Retry ${escapeText(task.type).slice(0, 60)}, ${task.id.slice(-12)}`}
          icon={<RotateCw className="size-3.5" aria-hidden="true" />}
          disabled={retry.isPending}
          onClick={() => retry.mutate(task.id)}
        >
          Retry
        </Button>
      )}
    </li>
  );
});
