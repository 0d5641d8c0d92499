import type { TaskPage } from "@/api/model";
import { LONGEST_AMONG, ORDERS, type Order } from "@/pages/tasks/order";
import { count } from "@/text/number";

type Totals = Pick<TaskPage, "total" | "totalCapped">;

/** "120", "10,000+" */
export function totalOf({ total, totalCapped }: Totals): string {
  return count(total) + (totalCapped ? "+" : "");
}

/** "51–100 of 120, newest first". `before`: how many tasks are before this page; null: not known. */
export function rangeOf(before: number | null, shown: number, totals: Totals, order: Order = "created"): string {
  if (order === "duration") return longest(shown, totals);
  const seen = (before ?? 0) + shown; // an older page of a search may show more than were counted
  const total = totalOf({ ...totals, total: Math.max(totals.total, totals.totalCapped ? seen : 0) });
  const part =
    before === null ? `${count(shown)} of ${total}` : `${count(before + 1)}–${count(before + shown)} of ${total}`;
  return `${part}, ${ORDERS[order].words}`;
}

/** One page, and no more: no index has how long tasks ran. */
function longest(shown: number, totals: Totals): string {
  const some = totals.totalCapped || totals.total > LONGEST_AMONG;
  const among = some ? `the newest ${count(LONGEST_AMONG)} that match` : count(totals.total);
  return `The longest ${count(shown)} of ${among}`;
}
