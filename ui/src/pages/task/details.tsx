import { Link } from "@tanstack/react-router";
import type { TaskDetail } from "@/api/model";
import { Card } from "@/components/card";
import { CopyButton } from "@/components/copy-button";
import { Fact, Facts, TimeFact } from "@/components/facts";
import { SafeText } from "@/components/safe-text";
import { Duration } from "@/components/times";
import { Tags } from "@/pages/task/tags";
import { firstDue, latestRun } from "@/pages/tasks/ran";
import { WorkerLink } from "@/pages/workers/worker-parts";
import { duration } from "@/text/time";

/** What is known of the task, besides what it carries. */
export function Details({ task }: { task: TaskDetail }) {
  const run = latestRun(task);
  return (
    <Card title="Details">
      <Facts>
        <Fact label="Attempts">
          {task.attempts} of {task.maxAttempts || "∞"}
        </Fact>
        <Fact label="Priority">{task.priority}</Fact>
        <TimeFact label="Created" at={task.createdAt} />
        <TimeFact label="Scheduled" at={firstDue(task)} />
        <TimeFact label="Started" at={task.lastAttemptAt} />
        <TimeFact label="Next retry" at={task.nextRetryAt} />
        <TimeFact label="Finished" at={task.completedAt} />
        {task.runMs !== null && task.status !== "processing" && (
          <Fact label="Ran for">
            <Duration ms={task.runMs} />
          </Fact>
        )}
        {run && (
          <Fact label="Claimed for">
            <Duration {...run} />
          </Fact>
        )}
        <Fact label="Timeout">{task.timeoutSeconds === null ? "none" : duration(task.timeoutSeconds * 1000)}</Fact>
        {task.workerId && (
          <Fact label="Worker">
            <WorkerLink id={task.workerId} className="break-all" />
          </Fact>
        )}
        <TimeFact label="Lease until" at={task.lockedUntil} />
        <TimeFact label="Asked to stop" at={task.cancelRequestedAt} />
        {task.idempotencyKey !== null && (
          <Fact label="Idempotency key">
            <span className="flex items-start justify-between gap-1">
              <SafeText
                text={task.idempotencyKey}
                max={300}
                className="min-w-0 break-all font-mono text-xs leading-5"
              />
              <span className="-my-1">
                <CopyButton text={task.idempotencyKey} label="Copy idempotency key" />
              </span>
            </span>
          </Fact>
        )}
        {task.copyOf && (
          <Fact label="Copy of">
            <Link
              to="/tasks/$taskId"
              params={{ taskId: task.copyOf }}
              className="break-all font-mono text-accent text-xs hover:underline"
            >
              {task.copyOf}
            </Link>
          </Fact>
        )}
        <Fact label="Row version">{task.version}</Fact>
        {Object.keys(task.tags).length > 0 && (
          <Fact label="Tags">
            <Tags tags={task.tags} />
          </Fact>
        )}
      </Facts>
    </Card>
  );
}
