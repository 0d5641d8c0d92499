import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "@/components/classes";

export interface TimelineItemProps {
  icon: LucideIcon;
  /** The colour of the icon. */
  tone: string;
  title: ReactNode;
  spin?: boolean;
  /** For tests: which kind of event. */
  state?: string;
  children: ReactNode;
}

/** One event: its icon on a line that goes on to the one before it. */
export function TimelineItem({ icon: Icon, tone, title, spin = false, state, children }: TimelineItemProps) {
  return (
    <li className="group flex gap-3" {...(state ? { "data-state": state } : {})}>
      <div className="flex flex-col items-center" aria-hidden="true">
        <Icon className={classes("mt-0.5 size-4 shrink-0", tone, spin && "motion-safe:animate-spin")} />
        <span className="my-1 w-px grow bg-line group-last:hidden" />
      </div>
      <div className="min-w-0 grow pb-4 group-last:pb-0">
        <p className="break-words font-medium">{title}</p>
        <div className="text-dim text-xs">{children}</div>
      </div>
    </li>
  );
}
