import { Link } from "@tanstack/react-router";
import { CirclePause, Pencil, Play, Trash2, TriangleAlert, Undo2 } from "lucide-react";
import type { ReactNode } from "react";
import { clearSchedule, pauseSchedule, resumeSchedule, triggerSchedule } from "@/api/actions";
import type { Schedule } from "@/api/model";
import { Button, IconButton } from "@/components/button";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import { StatusBadge } from "@/components/status-badge";
import { Switch } from "@/components/switch";
import { RelativeTime } from "@/components/times";
import { useAction } from "@/hooks/use-action";
import { colourOf, describe, isFailing, latest } from "@/pages/schedules/runs";
import { qualified } from "@/pages/tasks/search/qualified";
import { escapeText } from "@/text/escape";
import { count } from "@/text/number";

interface ScheduleProps {
  schedule: Schedule;
  mayOperate: boolean;
  maySubmit: boolean;
  onEdit: (schedule: Schedule) => void;
  onDelete: (schedule: Schedule) => void;
}

/** One schedule: what and when, what is next, how the latest went, and what can be done. The same on every screen. */
export function ScheduleItem(props: ScheduleProps) {
  const { schedule } = props;
  const last = latest(schedule);
  return (
    <li
      data-schedule={schedule.name}
      className="grid gap-x-6 gap-y-2 px-4 py-3 md:grid-cols-[minmax(0,3fr)_minmax(0,2fr)_auto] md:items-start"
    >
      <div className="min-w-0">
        <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <Link
            to="/tasks"
            search={{ q: qualified({ tag: `schedule=${schedule.name}` }) }}
            className="min-w-0 break-words font-medium text-accent hover:underline"
          >
            <SafeText text={schedule.name} max={120} />
          </Link>
          {schedule.paused && (
            <Mark className="bg-processing-soft text-processing">
              <CirclePause className="size-3.5" aria-hidden="true" />
              Paused
            </Mark>
          )}
          {schedule.orphaned && (
            <Mark className="bg-failed-soft text-failed">
              <TriangleAlert className="size-3.5" aria-hidden="true" />
              Orphaned
            </Mark>
          )}
          {schedule.edited && schedule.declared && <Mark className="bg-raised text-dim">Edited</Mark>}
        </span>
        <p className="break-words">
          {schedule.words ? (
            <SafeText text={schedule.words} max={300} />
          ) : (
            <span className="text-failed">Its definition cannot be read.</span>
          )}
        </p>
        {schedule.type && (
          <p className="break-words text-dim text-xs">
            submits <SafeText text={schedule.type} max={120} />
          </p>
        )}
        {schedule.orphaned && (
          <p className="text-failed text-xs">No worker has had it in its code for a day: it does not fire.</p>
        )}
      </div>
      <dl className="grid grid-cols-2 gap-x-4 gap-y-1 text-xs">
        <div>
          <dt className="text-dim">Next</dt>
          <dd data-figure="next">
            <RelativeTime at={schedule.nextAt} />
          </dd>
        </div>
        <div>
          <dt className="text-dim">Last</dt>
          <dd data-figure="last" className="flex flex-wrap items-center gap-1">
            {last?.status ? (
              <Link to="/tasks/$taskId" params={{ taskId: last.taskId }} className="hover:underline">
                <StatusBadge status={last.status} />
              </Link>
            ) : (
              <span className="text-faint">{last ? "–" : "not yet"}</span>
            )}
            {last && <RelativeTime at={last.slot} className="text-dim" />}
          </dd>
        </div>
        <div className="col-span-full">
          <dt className="sr-only">Latest runs</dt>
          <dd>
            <Strip schedule={schedule} />
            {isFailing(schedule) && <span className="text-failed">The last run failed.</span>}
            {schedule.missedTotal > 0 && <span className="text-dim"> {count(schedule.missedTotal)} missed</span>}
          </dd>
        </div>
      </dl>
      <Actions {...props} />
    </li>
  );
}

function Mark({ className, children }: { className: string; children: ReactNode }) {
  return (
    <span className={classes("inline-flex h-5 items-center gap-1 rounded-full px-2 font-medium text-xs", className)}>
      {children}
    </span>
  );
}

/** The latest twenty, each the way to its task. */
function Strip({ schedule }: { schedule: Schedule }) {
  if (schedule.runs.length === 0) return null;
  return (
    <ul aria-label="Latest runs" className="flex flex-wrap gap-0.5">
      {schedule.runs.map((run) => (
        <li key={`${run.slot} ${run.taskId}`}>
          <Link
            to="/tasks/$taskId"
            params={{ taskId: run.taskId }}
            title={describe(run)}
            aria-label={describe(run)}
            data-run={run.status ?? "deleted"}
            className={classes("block h-6 w-3 rounded-xs bg-current hover:opacity-70", colourOf(run))}
          />
        </li>
      ))}
    </ul>
  );
}

function Actions({ schedule, mayOperate, maySubmit, onEdit, onDelete }: ScheduleProps) {
  const name = escapeText(schedule.name).slice(0, 60);
  const pause = useAction(
    (paused: boolean) => (paused ? pauseSchedule(schedule.name) : resumeSchedule(schedule.name)),
    "toast",
    (_, paused) => (paused ? `${name} is paused.` : `${name} fires again.`),
  );
  const run = useAction(
    () => triggerSchedule(schedule.name),
    "toast",
    () => `A task of ${name} was submitted.`,
  );
  const clear = useAction(
    () => clearSchedule(schedule.name),
    "toast",
    () => `${name} is again as the code says.`,
  );
  if (!mayOperate && !maySubmit) return null;
  return (
    <div className="flex flex-wrap items-center gap-2 md:justify-end">
      {mayOperate && (
        <>
          <Switch
            label={`Pause ${name}`}
            text="Pause"
            checked={pause.isPending ? pause.variables : schedule.paused}
            busy={pause.isPending}
            onChange={(paused) => pause.mutate(paused)}
          />
          <Button
            size="small"
            icon={<Play className="size-3.5" aria-hidden="true" />}
            aria-label={`Run now: ${name}`}
            disabled={run.isPending}
            onClick={() => run.mutate(undefined)}
          >
            Run now
          </Button>
        </>
      )}
      {maySubmit && (
        <IconButton size="small" label={`Edit ${name}`} onClick={() => onEdit(schedule)}>
          <Pencil className="size-3.5" aria-hidden="true" />
        </IconButton>
      )}
      {mayOperate && schedule.edited && schedule.declared && (
        <IconButton size="small" label={`Back to the code's ${name}`} onClick={() => clear.mutate(undefined)}>
          <Undo2 className="size-3.5" aria-hidden="true" />
        </IconButton>
      )}
      {mayOperate && (
        <IconButton size="small" label={`Delete ${name}`} onClick={() => onDelete(schedule)}>
          <Trash2 className="size-3.5" aria-hidden="true" />
        </IconButton>
      )}
    </div>
  );
}
