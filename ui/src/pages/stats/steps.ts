/** The series of the API as charts and table need it. */
import type { Series } from "@/api/model";

export interface Step {
  at: number;
  until: number;
  /** The last one: not all of it has passed. */
  growing: boolean;
  completed: number;
  failed: number;
  retried: number;
  cancelled: number;
  /** Of the tasks that ended, the share that failed for good. Null: none ended. */
  failedShare: number | null;
  /** Of the attempts that ended, the share that failed. */
  attemptsFailedShare: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  backlogMs: number | null;
}

export function stepsOf(series: Series): Step[] {
  const length = series.stepMinutes * 60_000;
  return series.points.map((point, index) => {
    const at = Date.parse(point.at);
    const { completed, failed, retried, cancelled } = point;
    return {
      at,
      until: at + length,
      growing: index === series.points.length - 1,
      completed,
      failed,
      retried,
      cancelled,
      failedShare: share(failed, completed),
      attemptsFailedShare: share(failed + retried, completed),
      p50: point.p50Ms ?? null,
      p95: point.p95Ms ?? null,
      p99: point.p99Ms ?? null,
      backlogMs: point.backlogSeconds == null ? null : point.backlogSeconds * 1000,
    };
  });
}

export interface Summary {
  completed: number;
  failed: number;
  retried: number;
  /** Tasks that ended, on average over the time that has passed. */
  perMinute: number;
  failedShare: number | null;
  attemptsFailedShare: number | null;
  /** The latest step in which an attempt ended. */
  latest: Step | null;
  backlogMs: number | null;
  mostBacklogMs: number | null;
}

export function summaryOf(steps: readonly Step[], now: number): Summary {
  const sum = (field: "completed" | "failed" | "retried") => steps.reduce((total, step) => total + step[field], 0);
  const [completed, failed, retried] = [sum("completed"), sum("failed"), sum("retried")];
  const first = steps[0];
  const minutes = first ? Math.max(1, (now - first.at) / 60_000) : 1;
  const ages = steps.map((step) => step.backlogMs).filter((age) => age !== null);
  return {
    completed,
    failed,
    retried,
    perMinute: (completed + failed) / minutes,
    failedShare: share(failed, completed),
    attemptsFailedShare: share(failed + retried, completed),
    latest: steps.findLast((step) => step.p50 !== null) ?? null,
    backlogMs: ages.at(-1) ?? null,
    mostBacklogMs: ages.length ? Math.max(...ages) : null,
  };
}

function share(bad: number, good: number): number | null {
  return bad + good > 0 ? bad / (bad + good) : null;
}

/** 12, 3.4, 0.25: as many digits as tell something. */
export function rate(value: number): string {
  const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value);
}

export function percent(value: number | null): string {
  if (value === null) return "–";
  const shown = value * 100;
  return `${shown > 0 && shown < 0.1 ? "<0.1" : rate(shown)}%`;
}
