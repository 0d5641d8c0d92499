import { Hand } from "lucide-react";
import type { TaskDetail } from "@/api/model";
import { CopyButton } from "@/components/copy-button";
import { PageHeader } from "@/components/page-header";
import { StatusBadge } from "@/components/status-badge";
import { BackToList } from "@/pages/task/list-link";
import { isAskedToStop } from "@/pages/task/state";
import { TaskActions } from "@/pages/task/task-actions";

export function TaskHeader({ task }: { task: TaskDetail }) {
  return (
    <>
      <BackToList />
      <PageHeader
        title={task.type}
        badge={
          <>
            <StatusBadge status={task.status} nextRetryAt={task.nextRetryAt} waits={task.waits} />
            {isAskedToStop(task) && (
              <span className="inline-flex h-5.5 items-center gap-1 rounded-full bg-cancelled-soft px-2 font-medium text-cancelled text-xs">
                <Hand className="size-3.5" aria-hidden="true" />
                Asked to stop
              </span>
            )}
          </>
        }
        actions={<TaskActions task={task} />}
      >
        <span className="flex flex-wrap items-center gap-x-1">
          <span className="min-w-0 break-all font-mono text-xs">{task.id}</span>
          <CopyButton text={task.id} label="Copy ID" />
        </span>
      </PageHeader>
    </>
  );
}
