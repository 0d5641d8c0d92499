/** The series of the API as charts and table need it. */
import type { Series, SeriesPoint } from "@/api/model";

export interface Step extends Figures {
  at: number;
  until: number;
  /** Not all of it has passed. */
  growing: boolean;
  /** The same time earlier, where that is laid over. */
  before: Figures | null;
}

export interface Figures {
  completed: number;
  failed: number;
  retried: number;
  cancelled: number;
  /** Null: nobody was there to look. */
  arrived: number | null;
  /** How many were due and waited. */
  depth: number | null;
  /** Of the tasks that ended, the share that failed for good. Null: none ended. */
  failedShare: number | null;
  /** Of the attempts that ended, the share that failed. */
  attemptsFailedShare: number | null;
  p50: number | null;
  p95: number | null;
  p99: number | null;
  /** The same of the time that tasks waited before their first start. */
  waited50: number | null;
  waited95: number | null;
  waited99: number | null;
  backlogMs: number | null;
}

export function stepsOf(series: Series, now: number, laidOver?: { series: Series; ms: number }): Step[] {
  const length = series.stepMinutes * 60_000;
  const earlier = laidOver && figuresAt(laidOver.series, length);
  return series.points.map((point) => {
    const at = Date.parse(point.at);
    const before = earlier?.(at - (laidOver?.ms ?? 0)) ?? null;
    return { at, until: at + length, growing: at + length > now, before, ...figuresOf(point) };
  });
}

function figuresOf(point: SeriesPoint, part = 1): Figures {
  const number = (value: number) => value * part;
  const { completed, failed, retried } = point;
  return {
    completed: number(completed),
    failed: number(failed),
    retried: number(retried),
    cancelled: number(point.cancelled),
    arrived: point.arrived == null ? null : number(point.arrived),
    depth: point.depth ?? null,
    failedShare: share(failed, completed),
    attemptsFailedShare: share(failed + retried, completed),
    p50: point.p50Ms ?? null,
    p95: point.p95Ms ?? null,
    p99: point.p99Ms ?? null,
    waited50: point.waitedP50Ms ?? null,
    waited95: point.waitedP95Ms ?? null,
    waited99: point.waitedP99Ms ?? null,
    backlogMs: point.backlogSeconds == null ? null : point.backlogSeconds * 1000,
  };
}

/** What a series says of a time, in steps of another length. Older figures are known by the hour: counts are then what a
 * part of that hour had on average. */
function figuresAt(series: Series, length: number): (at: number) => Figures | null {
  const own = series.stepMinutes * 60_000;
  const points = new Map(series.points.map((point) => [Date.parse(point.at), point]));
  return (at) => {
    const point = points.get(Math.floor(at / own) * own);
    return point ? figuresOf(point, Math.min(1, length / own)) : null;
  };
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
  latestWaited: Step | null;
  backlogMs: number | null;
  mostBacklogMs: number | null;
  depth: number | null;
  mostDepth: number | null;
  /** Of the steps of which that is known. */
  arrived: number | null;
  /** In the same steps. */
  ended: number;
  /** By how much the depth has grown. */
  growth: number | null;
}

export function summaryOf(steps: readonly Step[], now: number): Summary {
  const sum = (field: "completed" | "failed" | "retried", of = steps) =>
    of.reduce((total, step) => total + step[field], 0);
  const [completed, failed, retried] = [sum("completed"), sum("failed"), sum("retried")];
  const [first, last] = [steps[0], steps.at(-1)];
  const minutes = first && last ? Math.max(1, (Math.min(now, last.until) - first.at) / 60_000) : 1;
  const known = <Value>(values: readonly (Value | null)[]) => values.filter((value) => value !== null);
  const ages = known(steps.map((step) => step.backlogMs));
  const depths = known(steps.map((step) => step.depth));
  const counted = steps.filter((step) => step.arrived !== null);
  return {
    completed,
    failed,
    retried,
    perMinute: (completed + failed) / minutes,
    failedShare: share(failed, completed),
    attemptsFailedShare: share(failed + retried, completed),
    latest: steps.findLast((step) => step.p50 !== null) ?? null,
    latestWaited: steps.findLast((step) => step.waited50 !== null) ?? null,
    backlogMs: ages.at(-1) ?? null,
    mostBacklogMs: ages.length ? Math.max(...ages) : null,
    depth: depths.at(-1) ?? null,
    mostDepth: depths.length ? Math.max(...depths) : null,
    arrived: counted.length ? counted.reduce((total, step) => total + (step.arrived ?? 0), 0) : null,
    ended: counted.reduce((total, step) => total + step.completed + step.failed + step.cancelled, 0),
    growth: depths.length > 1 ? (depths.at(-1) ?? 0) - (depths[0] ?? 0) : null,
  };
}

export type Verdict = "behind" | "catching up" | "keeping up";

const MUCH = 0.02;
const FEW = 10;

/** Are we falling behind? More wait than at the start, by more than chance. Null: nobody has looked twice. */
export function verdictOf({ growth, arrived }: Summary): Verdict | null {
  if (growth === null) return null;
  if (Math.abs(growth) < Math.max(FEW, MUCH * (arrived ?? 0))) return "keeping up";
  return growth > 0 ? "behind" : "catching up";
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
