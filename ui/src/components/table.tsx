import type { ComponentProps } from "react";
import { classes } from "@/components/classes";

export interface TableProps extends ComponentProps<"table"> {
  label: string;
  /** Long: scrolls down too, in a height of its own. */
  scrolling?: boolean;
}

/** Scrolls sideways where it is too wide, by keyboard too. */
export function Table({ label, scrolling = false, className, ...rest }: TableProps) {
  return (
    <section
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      className={classes("overflow-x-auto rounded-lg", scrolling && "max-h-112")}
    >
      <table {...rest} className={classes("w-full border-collapse text-left", className)} />
    </section>
  );
}

export function HeaderCell({ className, ...rest }: ComponentProps<"th">) {
  return (
    <th
      scope="col"
      {...rest}
      className={classes("h-9 whitespace-nowrap border-b px-3 font-medium text-dim text-xs", className)}
    />
  );
}

export function Row({ className, ...rest }: ComponentProps<"tr">) {
  return <tr {...rest} className={classes("border-b last:border-b-0 hover:bg-raised/60", className)} />;
}

export function Cell({ className, ...rest }: ComponentProps<"td">) {
  return <td {...rest} className={classes("h-10 px-3 py-1.5 align-middle", className)} />;
}
