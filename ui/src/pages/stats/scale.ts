/** Round figures for the side of a chart. */
export type Kind = "count" | "share" | "duration";

const MOST_PARTS = 5;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const DURATIONS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12].map((each) => each * HOUR),
  DAY,
];
const LOG_DURATIONS = [1, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, 10 * DAY];
const SHARES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

/** From nothing to at least `most`, in even parts that read well. */
export function ticksTo(most: number, kind: Kind): number[] {
  const step = stepFor(most, kind);
  const parts = Math.max(1, Math.ceil(most / step - 1e-9));
  return Array.from({ length: parts + 1 }, (_, part) => Number((part * step).toPrecision(12)));
}

/** The same for a logarithmic scale: nothing, and the highest few of 1, 10, 100, or of such units of time. */
export function logTicksTo(most: number, kind: Kind): number[] {
  const listed = kind === "duration" ? LOG_DURATIONS : Array.from({ length: 13 }, (_, power) => 10 ** power);
  const end = listed.findIndex((each) => each >= most);
  return [0, ...listed.slice(0, end < 0 ? listed.length : end + 1).slice(-MOST_PARTS)];
}

function stepFor(most: number, kind: Kind): number {
  const fits = (step: number) => most <= step * MOST_PARTS;
  const smallest = { count: 1, share: 0.01, duration: SECOND }[kind];
  if (most <= 0) return smallest;
  const listed = kind === "duration" ? DURATIONS : kind === "share" ? SHARES : [];
  const found = listed.find(fits);
  if (found !== undefined) return found;
  const unit = kind === "duration" ? DAY : 1; // beyond the list: 1, 2 or 5 times a power of ten
  for (let power = unit; ; power *= 10) {
    const step = [power, 2 * power, 5 * power].find(fits);
    if (step !== undefined) return step;
  }
}
