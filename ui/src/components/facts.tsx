import type { ReactNode } from "react";
import { AbsoluteTime, RelativeTime } from "@/components/times";

/** What is known of one thing, each with its name. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-[6.5rem_minmax(0,1fr)] gap-x-3 gap-y-2">{children}</dl>;
}

export function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{label}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

/** Nothing at all where there is no such time: a column of dashes tells nobody anything. */
export function TimeFact({ label, at }: { label: string; at: string | null }) {
  if (at === null) return null;
  return (
    <Fact label={label}>
      <RelativeTime at={at} />
      <span className="block text-faint text-xs">
        <AbsoluteTime at={at} />
      </span>
    </Fact>
  );
}
