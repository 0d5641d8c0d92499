import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { TaskDetail } from "@/api/model";
import { Card } from "@/components/card";
import { LinkedTasks } from "@/pages/task/linked-tasks";
import { count, plural } from "@/text/number";

/** What it waits, or waited, for, and what waits for it. Nothing for a task that stands alone. */
export function FlowCard({ task }: { task: TaskDetail }) {
  const { flowId, parents, feeds, after } = task;
  if (flowId === null && parents.total === 0 && feeds.total === 0) return null;
  return (
    <Card
      title="Flow"
      actions={
        flowId !== null && (
          <Link to="/flows/$flowId" params={{ flowId }} className="font-medium text-accent hover:underline">
            See the flow
          </Link>
        )
      }
    >
      <div className="space-y-4">
        {after?.cutBy && (
          <p>
            Cancelled because of{" "}
            <Link to="/tasks/$taskId" params={{ taskId: after.cutBy }} className="text-accent underline">
              another task
            </Link>
            . It comes back when that one is retried or revived.
          </p>
        )}
        {parents.total > 0 && (
          <Part title={waitsFor(task)} note={after?.on === "end" ? "Whatever becomes of them." : null}>
            <LinkedTasks label="Waits for" tasks={parents.tasks} total={parents.total} />
          </Part>
        )}
        {feeds.total > 0 && (
          <Part title={feedsOf(task)} note={null}>
            <LinkedTasks label="Wait for this" tasks={feeds.tasks} total={feeds.total} />
          </Part>
        )}
        {parents.total === 0 && feeds.total === 0 && (
          <p className="text-dim">It waits for no other task, and none waits for it.</p>
        )}
      </div>
    </Card>
  );
}

function Part({ title, note, children }: { title: string; note: string | null; children: ReactNode }) {
  return (
    <div className="space-y-1.5">
      <h3 className="font-medium">{title}</h3>
      {note && <p className="text-dim text-xs">{note}</p>}
      {children}
    </div>
  );
}

function waitsFor({ waits, parents, status }: TaskDetail): string {
  if (status !== "pending" || waits <= 0) return `After ${plural(parents.total, "task")}`;
  return `Waits for ${count(waits)} of ${count(parents.total)}`;
}

function feedsOf({ feeds, completedAt }: TaskDetail): string {
  if (completedAt === null && feeds.unfinished > 0) {
    const number =
      feeds.unfinished === feeds.total ? count(feeds.total) : `${count(feeds.unfinished)} of ${count(feeds.total)}`;
    return `${number} ${feeds.unfinished === 1 ? "waits" : "wait"} for this`;
  }
  return `${plural(feeds.total, "task")} ${feeds.total === 1 ? "depends" : "depend"} on it`;
}
