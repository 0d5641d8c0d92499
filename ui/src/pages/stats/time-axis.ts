/** Which times are named below a chart, and how. */
import { now } from "@/api/clock";
import type { Step } from "@/pages/stats/steps";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS = [10 * MINUTE, HOUR, 4 * HOUR, DAY, 7 * DAY] as const;
const MOST_TICKS = 9;

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DATE = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const BOTH = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

/** Steps that begin a round stretch of the viewer's own clock: ten minutes, an hour, a day. */
export function ticksOf(steps: readonly Step[]): number[] {
  const span = spanOf(steps);
  const unit = UNITS.find((each) => span / each <= MOST_TICKS) ?? 7 * DAY;
  const stretch = (at: number) => Math.floor((at - new Date(at).getTimezoneOffset() * MINUTE) / unit);
  return steps.filter((step, at) => at > 0 && stretch(step.at) !== stretch(steps[at - 1]?.at ?? 0)).map(({ at }) => at);
}

export function tickLabel(steps: readonly Step[]): (at: number) => string {
  const format = spanOf(steps) > 2 * DAY ? DATE : CLOCK;
  return (at) => format.format(at);
}

/** "14:05–14:06", with the date where it is not today's. */
export function stepLabel({ at, until }: Pick<Step, "at" | "until">): string {
  const today = DATE.format(now());
  const label = (time: number) => (DATE.format(time) === today ? CLOCK : BOTH).format(time);
  const sameDay = DATE.format(at) === DATE.format(until);
  return `${label(at)}–${sameDay ? CLOCK.format(until) : label(until)}`;
}

function spanOf(steps: readonly Step[]): number {
  return (steps.at(-1)?.at ?? 0) - (steps[0]?.at ?? 0);
}
