import { ArrowDown } from "lucide-react";
import { classes } from "@/components/classes";
import { Tooltip } from "@/components/tooltip";
import type { Order } from "@/pages/tasks/order";

export interface Sorting {
  order: Order;
  onOrder: (order: Order) => void;
  /** Why the list cannot have an order; null: it can. */
  obstacle: (order: Order) => string | null;
}

interface SortButtonProps {
  order: Order;
  label: string;
  title: string | undefined;
  sorting: Sorting;
}

/** The head of a column by which the list can be sorted. */
export function SortButton({ order, label, title, sorting }: SortButtonProps) {
  const reason = sorting.obstacle(order);
  const active = sorting.order === order;
  const button = (
    <button
      type="button"
      aria-disabled={reason !== null}
      onClick={() => reason === null && sorting.onOrder(order)}
      title={reason ? undefined : title}
      className={classes("inline-flex items-center gap-0.5 rounded hover:text-text", active && "text-text")}
    >
      {label}
      {active && <ArrowDown className="size-3" aria-hidden="true" />}
    </button>
  );
  return reason ? <Tooltip label={reason}>{button}</Tooltip> : button;
}
