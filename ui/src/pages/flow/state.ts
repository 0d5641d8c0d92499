/** What the tasks of a flow, or of one of its nodes, are doing, in one word and in many. */
import type { FlowCounts } from "@/api/model";
import { count, plural } from "@/text/number";

/** The most urgent first: of a node with tasks in several states this is what it shows. */
export const STATES = ["failed", "processing", "retrying", "pending", "waiting", "cancelled", "completed"] as const;
export type State = (typeof STATES)[number];

/** How the parts of a bar follow each other: what is done grows from the left. */
export const BAR_ORDER: readonly State[] = [
  "completed",
  "failed",
  "cancelled",
  "retrying",
  "processing",
  "pending",
  "waiting",
];

export const BAR_COLOURS: Record<State, string> = {
  completed: "fill-(--chart-completed)",
  failed: "fill-(--chart-failed)",
  cancelled: "fill-(--chart-cancelled)",
  retrying: "fill-(--chart-failed) opacity-50",
  processing: "fill-(--chart-processing)",
  pending: "fill-(--chart-pending)",
  waiting: "fill-line-strong",
};

export function stateOf(counts: FlowCounts): State {
  return STATES.find((state) => counts[state] > 0) ?? "completed";
}

export function totalOf(counts: FlowCounts): number {
  return STATES.reduce((sum, state) => sum + counts[state], 0);
}

/** "5 completed, 1 failed" */
export function inWords(counts: FlowCounts): string {
  const words = BAR_ORDER.filter((state) => counts[state] > 0).map((state) => `${count(counts[state])} ${state}`);
  return words.join(", ") || "no tasks";
}

/** Room for one thing: what went wrong, or how far it is. */
export function inShort(counts: FlowCounts): string {
  const total = totalOf(counts);
  const state = stateOf(counts);
  if (total <= 1) return state;
  if (counts[state] === total) return `${plural(total, "task")} ${state}`;
  const shown = state === "failed" || state === "cancelled" ? state : "completed";
  return `${count(counts[shown])} of ${count(total)} ${shown}`;
}

export interface Part {
  state: State;
  /** Of 100. */
  from: number;
  width: number;
}

const LEAST_WIDTH = 1.5;

/** Parts of a bar. One task of ten thousand is still seen. */
export function barOf(counts: FlowCounts): Part[] {
  const total = totalOf(counts);
  const there = BAR_ORDER.filter((state) => counts[state] > 0);
  const widths = there.map((state) => Math.max(LEAST_WIDTH, (100 * counts[state]) / total));
  const all = widths.reduce((sum, width) => sum + width, 0);
  let from = 0;
  return there.map((state, at) => {
    const width = (100 * (widths[at] ?? 0)) / all;
    from += width;
    return { state, from: from - width, width };
  });
}
