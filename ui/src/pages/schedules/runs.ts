import type { Schedule, ScheduleRun } from "@/api/model";
import { absolute } from "@/text/time";

/** Its latest task, of those that were made, failed. */
export function isFailing(schedule: Schedule): boolean {
  return latest(schedule)?.status === "failed";
}

export function latest(schedule: Schedule): ScheduleRun | null {
  return schedule.runs.findLast((run) => run.created) ?? null;
}

const COLOURS: Record<string, string> = {
  completed: "text-completed",
  failed: "text-failed",
  processing: "text-processing",
  pending: "text-pending",
};

export function colourOf(run: ScheduleRun): string {
  return run.created ? (COLOURS[run.status ?? ""] ?? "text-faint") : "text-line-strong";
}

/** Read aloud and shown on hover. */
export function describe(run: ScheduleRun): string {
  const became = run.created ? (run.status ?? "deleted since") : "left out, an earlier one was not over";
  return `${absolute(Date.parse(run.slot))}: ${became}`;
}
