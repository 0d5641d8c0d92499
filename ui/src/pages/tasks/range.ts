import type { TaskPage } from "@/api/model";
import { count } from "@/text/number";

type Totals = Pick<TaskPage, "total" | "totalCapped">;

/** "120", "10,000+" */
export function totalOf({ total, totalCapped }: Totals): string {
  return count(total) + (totalCapped ? "+" : "");
}

/** "51–100 of 120, newest first". `before`: how many tasks are before this page; null: not known. */
export function rangeOf(before: number | null, shown: number, totals: Totals): string {
  const total = totalOf(totals);
  const part =
    before === null ? `${count(shown)} of ${total}` : `${count(before + 1)}–${count(before + shown)} of ${total}`;
  return `${part}, newest first`;
}
