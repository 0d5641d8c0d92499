import type { Distribution } from "@/api/model";
import { duration } from "@/text/time";

export interface HistogramBar {
  label: string;
  count: number;
}

/** From the first bucket that holds something to the last. */
export function barsOf(buckets: Distribution["buckets"]): HistogramBar[] {
  const first = buckets.findIndex(({ count }) => count > 0);
  const last = buckets.findLastIndex(({ count }) => count > 0);
  if (first < 0) return [];
  return buckets.slice(first, last + 1).map(({ upToMs, count }, at) => {
    const from = buckets[first + at - 1]?.upToMs ?? null;
    return { label: upToMs === null ? `over ${duration(from ?? 0)}` : `up to ${duration(upToMs)}`, count };
  });
}
