import { Link } from "@tanstack/react-router";
import type { LinkedTasks as Linked } from "@/api/model";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { shortId } from "@/pages/tasks/cells";
import { count } from "@/text/number";

export interface LinkedTasksProps {
  label: string;
  tasks: Linked["tasks"];
  total: number;
}

/** Tasks that another has to do with, each the way to its page. */
export function LinkedTasks({ label, tasks, total }: LinkedTasksProps) {
  return (
    <ul aria-label={label} className="space-y-1">
      {tasks.map((task) => (
        <li key={task.id} className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <StatusBadge status={task.status} />
          <Link
            to="/tasks/$taskId"
            params={{ taskId: task.id }}
            className="min-w-0 break-words font-medium text-accent hover:underline"
          >
            <SafeText text={task.type} max={120} /> <span className="font-mono text-xs">{shortId(task.id)}</span>
          </Link>
        </li>
      ))}
      {total > tasks.length && <li className="text-dim text-xs">and {count(total - tasks.length)} more</li>}
    </ul>
  );
}
