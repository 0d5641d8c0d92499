/** What the charts show, as the address holds it. */

export const RANGES = [
  { value: "1h", label: "1 h", minutes: 60 },
  { value: "6h", label: "6 h", minutes: 360 },
  { value: "24h", label: "24 h", minutes: 1440 },
  { value: "7d", label: "7 d", minutes: 10_080 },
  { value: "60d", label: "60 d", minutes: 86_400 },
] as const;

export type Range = (typeof RANGES)[number]["value"];

export interface StatsSearch {
  /** One hour unless given. */
  range?: Range;
  /** Only this task type. */
  type?: string;
  /** Charts unless given. */
  view?: View;
}

export type View = "charts" | "table";

export function readStatsSearch(given: Record<string, string>): StatsSearch {
  const range = RANGES.find(({ value }) => value === given["range"])?.value;
  return {
    ...(range && range !== "1h" ? { range } : {}),
    ...(given["type"] ? { type: given["type"] } : {}),
    ...(given["view"] === "table" ? { view: given["view"] } : {}),
  };
}

export function minutesOf(range: Range): number {
  return RANGES.find(({ value }) => value === range)?.minutes ?? 60;
}
