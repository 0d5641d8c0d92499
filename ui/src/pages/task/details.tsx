import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { TaskDetail } from "@/api/model";
import { Card } from "@/components/card";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime, Duration, RelativeTime } from "@/components/times";
import { Tags } from "@/pages/task/tags";
import { firstDue, latestRun } from "@/pages/tasks/ran";
import { WorkerLink } from "@/pages/workers/worker-parts";
import { duration } from "@/text/time";

/** What is known of the task, besides what it carries. */
export function Details({ task }: { task: TaskDetail }) {
  const run = latestRun(task);
  return (
    <Card title="Details">
      <dl className="grid grid-cols-[6.5rem_minmax(0,1fr)] gap-x-3 gap-y-2">
        <Item label="Attempts">
          {task.attempts} of {task.maxAttempts || "∞"}
        </Item>
        <Item label="Priority">{task.priority}</Item>
        <Time label="Created" at={task.createdAt} />
        <Time label="Scheduled" at={firstDue(task)} />
        <Time label="Started" at={task.lastAttemptAt} />
        <Time label="Next retry" at={task.nextRetryAt} />
        <Time label="Finished" at={task.completedAt} />
        {task.runMs !== null && task.status !== "processing" && (
          <Item label="Ran for">
            <Duration ms={task.runMs} />
          </Item>
        )}
        {run && (
          <Item label="Claimed for">
            <Duration {...run} />
          </Item>
        )}
        <Item label="Timeout">{task.timeoutSeconds === null ? "none" : duration(task.timeoutSeconds * 1000)}</Item>
        {task.workerId && (
          <Item label="Worker">
            <WorkerLink id={task.workerId} className="break-all" />
          </Item>
        )}
        <Time label="Lease until" at={task.lockedUntil} />
        <Time label="Asked to stop" at={task.cancelRequestedAt} />
        {task.idempotencyKey !== null && (
          <Item label="Idempotency key">
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
          </Item>
        )}
        {task.copyOf && (
          <Item label="Copy of">
            <Link
              to="/tasks/$taskId"
              params={{ taskId: task.copyOf }}
              className="break-all font-mono text-accent text-xs hover:underline"
            >
              {task.copyOf}
            </Link>
          </Item>
        )}
        <Item label="Version">{task.version}</Item>
        {Object.keys(task.tags).length > 0 && (
          <Item label="Tags">
            <Tags tags={task.tags} />
          </Item>
        )}
      </dl>
    </Card>
  );
}

function Item({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{label}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

/** Nothing at all where there is no such time: a column of dashes tells nobody anything. */
function Time({ label, at }: { label: string; at: string | null }) {
  if (at === null) return null;
  return (
    <Item label={label}>
      <RelativeTime at={at} />
      <span className="block text-faint text-xs">
        <AbsoluteTime at={at} />
      </span>
    </Item>
  );
}
