/** The orders that a list can have. */
import { type Filter, isByEnd } from "@/pages/tasks/search/filter";

export const ORDERS = {
  created: { option: "Newest first", words: "newest first" },
  ended: { option: "Latest end first", words: "latest end first" },
  duration: { option: "Longest first", words: "longest first" },
} as const;
export type Order = keyof typeof ORDERS;

/** How many of the newest the longest are looked for among. */
export const LONGEST_AMONG = 10_000;

export function readOrder(text: string | undefined): Order {
  return text !== undefined && Object.hasOwn(ORDERS, text) ? (text as Order) : "created";
}

/** Why a search cannot be listed in this order; null: it can. */
export function orderObstacle(order: Order, filter: Filter): string | null {
  if (order !== "ended" || isByEnd(filter.statuses)) return null;
  return "By their end only failed and cancelled tasks can be sorted: choose one of these statuses, or both.";
}
