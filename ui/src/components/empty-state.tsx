import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Command } from "@/components/command";

export interface EmptyStateProps {
  icon?: LucideIcon;
  title: string;
  /** Why there is nothing, and what would change that. */
  children?: ReactNode;
  /** The next command to run. */
  command?: string;
  /** Buttons, links. */
  actions?: ReactNode;
}

export function EmptyState({ icon: Icon, title, children, command, actions }: EmptyStateProps) {
  return (
    <div className="flex flex-col items-center gap-3 px-4 py-12 text-center">
      {Icon && <Icon className="size-6 text-faint" aria-hidden="true" />}
      <p className="font-semibold text-sm">{title}</p>
      {children && <div className="w-full max-w-md text-balance text-dim">{children}</div>}
      {command && <Command text={command} />}
      {actions}
    </div>
  );
}
