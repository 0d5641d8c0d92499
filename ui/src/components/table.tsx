import type { ComponentProps } from "react";
import { classes } from "@/components/classes";

/** Scrolls sideways where it is too wide, by keyboard too. */
export function Table({ label, className, ...rest }: ComponentProps<"table"> & { label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section aria-label={label} tabIndex={0} className="overflow-x-auto rounded-lg">
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
