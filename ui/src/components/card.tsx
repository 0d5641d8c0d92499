import { type ReactNode, useId } from "react";
import { classes } from "@/components/classes";

export interface CardProps {
  title?: ReactNode;
  /** Buttons at the right of the title. */
  actions?: ReactNode;
  /** No space around the content: for tables. */
  flush?: boolean;
  className?: string;
  children: ReactNode;
}

export function Card({ title, actions, flush = false, className, children }: CardProps) {
  const id = useId();
  return (
    <section
      {...(title ? { "aria-labelledby": id } : {})}
      className={classes("min-w-0 rounded-lg border bg-surface", className)}
    >
      {(title || actions) && (
        <header className="flex min-h-10 flex-wrap items-center justify-between gap-2 border-b px-4 py-1.5">
          <h2 id={id} className="font-semibold">
            {title}
          </h2>
          {actions && <div className="flex items-center gap-1">{actions}</div>}
        </header>
      )}
      <div className={flush ? "" : "p-4"}>{children}</div>
    </section>
  );
}
