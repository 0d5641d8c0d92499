const FULL = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 12,345 */
export function count(value: number): string {
  return FULL.format(value);
}

/** 12.3K */
export function compact(value: number): string {
  return SHORT.format(value);
}

/** "1 task", "2 tasks" */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${value === 1 ? noun : `${noun}s`}`;
}
