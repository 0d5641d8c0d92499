import { CircleCheck, CirclePower, type LucideIcon, TriangleAlert } from "lucide-react";
import { classes } from "@/components/classes";
import type { WorkerState } from "@/pages/workers/worker-state";

const LOOKS: Record<WorkerState, { label: string; icon: LucideIcon; colours: string }> = {
  live: { label: "Live", icon: CircleCheck, colours: "bg-completed-soft text-completed" },
  stopping: { label: "Stopping", icon: CirclePower, colours: "bg-processing-soft text-processing" },
  lost: { label: "Lost", icon: TriangleAlert, colours: "bg-failed-soft text-failed" },
  stopped: { label: "Stopped", icon: CirclePower, colours: "bg-cancelled-soft text-cancelled" },
};

/** Icon and word beside the colour. */
export function WorkerStateBadge({ state }: { state: WorkerState }) {
  const { label, icon: Icon, colours } = LOOKS[state];
  return (
    <span
      data-worker-state={state}
      className={classes("inline-flex h-5.5 items-center gap-1 rounded-full px-2 font-medium text-xs", colours)}
    >
      <Icon className="size-3.5 shrink-0" aria-hidden="true" />
      {label}
    </span>
  );
}
