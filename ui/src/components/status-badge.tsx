import { Ban, CircleCheck, CircleX, Clock, LoaderCircle, type LucideIcon, RotateCw } from "lucide-react";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";

interface Look {
  label: string;
  icon: LucideIcon;
  colours: string;
}

const LOOKS: Record<string, Look> = {
  pending: { label: "Pending", icon: Clock, colours: "bg-pending-soft text-pending" },
  processing: { label: "Processing", icon: LoaderCircle, colours: "bg-processing-soft text-processing" },
  completed: { label: "Completed", icon: CircleCheck, colours: "bg-completed-soft text-completed" },
  failed: { label: "Failed", icon: CircleX, colours: "bg-failed-soft text-failed" },
  retrying: { label: "Failed · retry waiting", icon: RotateCw, colours: "bg-failed-soft text-failed" },
  cancelled: { label: "Cancelled", icon: Ban, colours: "bg-cancelled-soft text-cancelled" },
};

export interface StatusBadgeProps {
  status: string;
  /** Set while a failed task waits for its next attempt. */
  nextRetryAt?: string | null;
}

/** Icon and word beside the colour, so that nobody needs to see the colour. */
export function StatusBadge({ status, nextRetryAt = null }: StatusBadgeProps) {
  const look = LOOKS[status === "failed" && nextRetryAt ? "retrying" : status];
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
        className={classes("size-3.5 shrink-0", status === "processing" && "motion-safe:animate-spin")}
        aria-hidden="true"
      />
      {look?.label ?? <SafeText text={status} />}
    </span>
  );
}
