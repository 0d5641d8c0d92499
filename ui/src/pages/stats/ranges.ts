/** What the charts show, as the address holds it. */

export const RANGES = [
  { value: "1h", label: "1 h", minutes: 60 },
  { value: "6h", label: "6 h", minutes: 360 },
  { value: "24h", label: "24 h", minutes: 1440 },
  { value: "7d", label: "7 d", minutes: 10_080 },
  { value: "60d", label: "60 d", minutes: 86_400 },
] as const;

export type Range = (typeof RANGES)[number]["value"];

/** What is laid over: the same time, so long before. */
export const EARLIER = {
  day: { label: "the day before", ms: 86_400_000 },
  week: { label: "the week before", ms: 7 * 86_400_000 },
} as const;

export type Earlier = keyof typeof EARLIER;

export interface StatsSearch {
  /** One hour unless given. */
  range?: Range;
  /** A time of one's own in its place, ISO 8601; up to now unless `to` is given. */
  from?: string;
  to?: string;
  /** Only this task type. */
  type?: string;
  /** Charts unless given. */
  view?: View;
  /** Nothing unless given. */
  compare?: Earlier;
  /** Linear unless given. */
  scale?: "log";
}

export type View = "charts" | "table";

const MOST_MINUTES = 86_400;
const MINUTE = 60_000;

export function readStatsSearch(given: Record<string, string>): StatsSearch {
  const range = RANGES.find(({ value }) => value === given["range"])?.value;
  const [from, to] = [instant(given["from"]), instant(given["to"])];
  const own = from !== null && (to === null || from < to);
  const compare = Object.keys(EARLIER).find((each) => each === given["compare"]) as Earlier | undefined;
  return {
    ...(range && range !== "1h" && !own ? { range } : {}),
    ...(own ? { from } : {}),
    ...(own && to ? { to } : {}),
    ...(given["type"] ? { type: given["type"] } : {}),
    ...(given["view"] === "table" ? { view: given["view"] } : {}),
    ...(compare ? { compare } : {}),
    ...(given["scale"] === "log" ? { scale: given["scale"] } : {}),
  };
}

export interface TypeSearch {
  /** One day unless given. */
  range?: Range;
}

export function readTypeSearch(given: Record<string, string>): TypeSearch {
  const range = RANGES.find(({ value }) => value === given["range"])?.value;
  return range && range !== "24h" ? { range } : {};
}

export function minutesOf(range: Range): number {
  return RANGES.find(({ value }) => value === range)?.minutes ?? 60;
}

export interface Window {
  minutes: number;
  /** ISO 8601; without it, now. */
  until?: string;
}

/** The time that a search asks for. */
export function windowOf({ range = "1h", from, to }: StatsSearch, now: number): Window {
  if (!from) return { minutes: minutesOf(range) };
  const end = Math.min(now, to ? Date.parse(to) : now);
  const minutes = Math.ceil((end - Date.parse(from)) / MINUTE);
  return { minutes: Math.min(MOST_MINUTES, Math.max(1, minutes)), ...(to ? { until: to } : {}) };
}

/** The same, so long before. */
export function earlierWindow(window: Window, compare: Earlier, now: number): Window {
  const end = window.until ? Date.parse(window.until) : Math.ceil(now / MINUTE) * MINUTE;
  return { minutes: window.minutes, until: new Date(end - EARLIER[compare].ms).toISOString() };
}

function instant(text: string | undefined): string | null {
  const time = text ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? null : new Date(time).toISOString();
}
