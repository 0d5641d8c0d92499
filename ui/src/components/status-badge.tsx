import { Ban, CircleCheck, CircleX, Clock, Hourglass, LoaderCircle, type LucideIcon, RotateCw } from "lucide-react";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import { count } from "@/text/number";

interface Look {
  label: string;
  icon: LucideIcon;
  colours: string;
}

export const LOOKS: Record<string, Look> = {
  pending: { label: "Pending", icon: Clock, colours: "bg-pending-soft text-pending" },
  processing: { label: "Processing", icon: LoaderCircle, colours: "bg-processing-soft text-processing" },
  completed: { label: "Completed", icon: CircleCheck, colours: "bg-completed-soft text-completed" },
  failed: { label: "Failed", icon: CircleX, colours: "bg-failed-soft text-failed" },
  retrying: { label: "Failed · retry waiting", icon: RotateCw, colours: "bg-failed-soft text-failed" },
  waiting: { label: "Waiting", icon: Hourglass, colours: "bg-pending-soft text-pending" },
  running: { label: "Running", icon: LoaderCircle, colours: "bg-processing-soft text-processing" },
  cancelled: { label: "Cancelled", icon: Ban, colours: "bg-cancelled-soft text-cancelled" },
};

export interface StatusBadgeProps {
  status: string;
  /** Set while a failed task waits for its next attempt. */
  nextRetryAt?: string | null;
  /** How many tasks it waits for. */
  waits?: number;
}

/** Icon and word beside the colour, so that nobody needs to see the colour. */
export function StatusBadge({ status, nextRetryAt = null, waits = 0 }: StatusBadgeProps) {
  const waiting = status === "pending" && waits > 0;
  const look = LOOKS[status === "failed" && nextRetryAt ? "retrying" : waiting ? "waiting" : status];
  const Icon = look?.icon ?? Clock;
  return (
    <span
      data-status={status}
      className={classes(
        "inline-flex h-5.5 items-center gap-1 whitespace-nowrap rounded-full px-2 font-medium text-xs",
        look?.colours ?? "bg-cancelled-soft text-cancelled",
      )}
    >
      <Icon
        className={classes("size-3.5 shrink-0", /^(processing|running)$/.test(status) && "motion-safe:animate-spin")}
        aria-hidden="true"
      />
      {waiting ? `Pending · waits for ${count(waits)}` : (look?.label ?? <SafeText text={status} />)}
    </span>
  );
}
