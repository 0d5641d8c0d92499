import { Link } from "@tanstack/react-router";
import {
  CalendarClock,
  CirclePause,
  Gauge,
  Hourglass,
  type LucideIcon,
  RotateCw,
  Server,
  Workflow,
} from "lucide-react";
import type { ReactNode } from "react";
import type { TaskDetail, WaitingReason } from "@/api/model";
import { Card } from "@/components/card";
import { Command } from "@/components/command";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime } from "@/components/times";
import { useSession } from "@/hooks/use-session";
import { Countdown } from "@/pages/task/countdown";
import { LinkedTasks } from "@/pages/task/linked-tasks";

const SHOWN_TASKS = 5;

type Cause = WaitingReason["cause"];

const LOOKS: Record<Cause, { title: string; icon: LucideIcon }> = {
  tasks: { title: "Waits for other tasks", icon: Workflow },
  paused: { title: "Paused", icon: CirclePause },
  no_worker: { title: "No worker handles it", icon: Server },
  scheduled: { title: "Scheduled for later", icon: CalendarClock },
  retry: { title: "Its retry is not due yet", icon: RotateCw },
  concurrency_limit: { title: "Concurrency limit", icon: Gauge },
  rate_limit: { title: "Rate limit", icon: Gauge },
  busy: { title: "Waiting for its turn", icon: Hourglass },
};

/** Everything that holds the task back, each with what would change it. */
export function WaitingPanel({ task }: { task: TaskDetail }) {
  if (task.waitingFor.length === 0) return null;
  return (
    <Card title="Why is it waiting?">
      <ul className="space-y-4">
        {task.waitingFor.map((reason) => (
          <Reason key={`${reason.cause} ${reason.text}`} reason={reason} task={task} />
        ))}
      </ul>
    </Card>
  );
}

function Reason({ reason, task }: { reason: WaitingReason; task: TaskDetail }) {
  const { mayOperate } = useSession();
  const look = LOOKS[reason.cause];
  const Icon = look?.icon ?? Hourglass;
  return (
    <li className="flex gap-3" data-cause={reason.cause}>
      <Icon className="mt-0.5 size-4 shrink-0 text-pending" aria-hidden="true" />
      <div className="min-w-0 grow space-y-1.5">
        <p className="font-medium">
          {look?.title ?? "Waiting"}
          {reason.until && (
            <>
              : <Countdown to={reason.until} />
            </>
          )}
        </p>
        <p className="break-words text-dim">
          <SafeText text={reason.text} max={500} />
          {reason.until && (
            <>
              {" "}
              Due at <AbsoluteTime at={reason.until} />.
            </>
          )}
        </p>
        {reason.cause === "tasks" && <Awaited task={task} />}
        <div className="text-dim">{adviceFor(reason.cause, mayOperate)}</div>
      </div>
    </li>
  );
}

/** Some of them: the card of the flow has the list. Those that are not over come first; of very many the first are told,
 * which may be over. */
function Awaited({ task: { parents, waits } }: { task: TaskDetail }) {
  const left = parents.tasks
    .filter(({ status }) => status !== "completed" && status !== "cancelled")
    .slice(0, Math.min(waits, SHOWN_TASKS));
  return <LinkedTasks label="Still to end" tasks={left} total={waits} />;
}

function adviceFor(cause: Cause, mayOperate: boolean): ReactNode {
  switch (cause) {
    case "paused":
      return (
        <>
          It starts once somebody resumes. <ToTypes>See what is paused</ToTypes>
        </>
      );
    case "no_worker":
      return (
        <div className="space-y-1.5">
          <p>Start one with the module that defines this type:</p>
          <Command text="tasklib worker app.tasks" />
        </div>
      );
    case "retry":
      return mayOperate ? "Retry runs it now, with all its attempts anew." : null;
    case "concurrency_limit":
      return (
        <>
          It starts when one of them ends. <ToTypes>See or change the limits</ToTypes>
        </>
      );
    case "rate_limit":
      return (
        <>
          It starts when its turn comes. <ToTypes>See or change the limits</ToTypes>
        </>
      );
    case "busy":
      return (
        <>
          If it takes too long, start more workers or give them more slots with <code>--concurrency</code>.{" "}
          <Link to="/workers" className="whitespace-nowrap text-accent underline">
            See the workers
          </Link>
        </>
      );
    default:
      return null;
  }
}

function ToTypes({ children }: { children: ReactNode }) {
  return (
    <Link to="/types" className="whitespace-nowrap text-accent underline">
      {children}
    </Link>
  );
}
