/** Times and durations in few words. */

const UNITS: readonly [name: string, seconds: number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
];

/** 850 ms, 1.2 s, 3m 20s, 2h 5m, 3d 4h. */
export function duration(ms: number): string {
  if (ms < 0) return "0 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [big, small] = [UNITS[first], UNITS[first + 1]];
  if (!big || !small) return `${seconds} s`;
  const rest = Math.floor((seconds % big[1]) / small[1]);
  return `${Math.floor(seconds / big[1])}${big[0]}${rest ? ` ${rest}${small[0]}` : ""}`;
}

/** just now, 12s ago, 3m ago; in 5s, in 2h. */
export function relative(at: number, now: number): string {
  const seconds = Math.round(Math.abs(at - now) / 1000);
  if (seconds < 2) return at > now ? "in 1s" : "just now";
  const [name, size] = UNITS.find(([, each]) => seconds >= each) ?? ["s", 1];
  const count = `${Math.floor(seconds / size)}${name}`;
  return at > now ? `in ${count}` : `${count} ago`;
}

const ABSOLUTE = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
  timeZoneName: "short",
});

/** In the viewer's zone, with the zone named. */
export function absolute(at: number): string {
  return Number.isNaN(at) ? "not a time" : ABSOLUTE.format(at);
}
