import { now } from "@/api/clock";
import { useTicking } from "@/hooks/use-ticking";
import { absolute, duration } from "@/text/time";

/** "in 4m 12s", second by second; "any moment" once it has come. */
export function Countdown({ to }: { to: string }) {
  const instant = Date.parse(to);
  const text = useTicking(() => countdown(instant - now()));
  if (Number.isNaN(instant)) return null;
  return (
    <time dateTime={new Date(instant).toISOString()} title={absolute(instant)} className="whitespace-nowrap">
      {text}
    </time>
  );
}

export function countdown(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (!(seconds > 0)) return "any moment";
  return seconds < 60 ? `in ${seconds}s` : `in ${duration(seconds * 1000)}`;
}
