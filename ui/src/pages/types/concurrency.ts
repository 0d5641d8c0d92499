const MOST = 1_000_000;

/** What is wrong with a number as typed; empty is no limit. */
export function concurrencyFault(typed: string): string | null {
  const text = typed.trim();
  if (text === "") return null;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1)
    return "Give a whole number of 1 or more, or nothing. To stop the type, pause it.";
  return value > MOST ? "Give at most 1,000,000." : null;
}
