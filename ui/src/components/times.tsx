import { now } from "@/api/clock";
import { useTicking } from "@/hooks/use-ticking";
import { absolute, duration, relative } from "@/text/time";

/** "3m ago", kept current; the exact time on hover and for machines. A dash where there is none. */
export function RelativeTime({ at, className }: { at: string | null | undefined; className?: string }) {
  const instant = at ? Date.parse(at) : Number.NaN;
  const text = useTicking(() => (Number.isNaN(instant) ? "–" : relative(instant, now())));
  if (Number.isNaN(instant)) return <span className="text-faint">–</span>;
  return (
    <time dateTime={new Date(instant).toISOString()} title={absolute(instant)} className={className}>
      {text}
    </time>
  );
}

export function AbsoluteTime({ at }: { at: string | null | undefined }) {
  const instant = at ? Date.parse(at) : Number.NaN;
  if (Number.isNaN(instant)) return <span className="text-faint">–</span>;
  return <time dateTime={new Date(instant).toISOString()}>{absolute(instant)}</time>;
}

export type DurationProps = { ms: number } | { from: string | null | undefined; to?: string | null | undefined };

/** A length of time; without an end it grows. */
export function Duration(props: DurationProps) {
  const text = useTicking(() => ("ms" in props ? duration(props.ms) : between(props.from, props.to)));
  return <span className={text === "–" ? "text-faint" : ""}>{text}</span>;
}

function between(from: string | null | undefined, to: string | null | undefined): string {
  const start = from ? Date.parse(from) : Number.NaN;
  const end = to ? Date.parse(to) : now();
  if (Number.isNaN(start) || Number.isNaN(end)) return "–";
  // One that still runs is shown in whole seconds: tenths that jump are no use to anybody.
  return to ? duration(end - start) : duration(Math.max(1000, Math.floor((end - start) / 1000) * 1000));
}
