/** Which tasks a clean-up deletes. */
import type { CleanUpQuery } from "@/api/model";

export const FINISHED = ["completed", "failed", "cancelled"] as const;
export type Finished = (typeof FINISHED)[number];

export const UNITS = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const;
export type Unit = keyof typeof UNITS;

export interface CleanUpChoice {
  /** As typed. */
  age: string;
  unit: Unit;
  statuses: readonly Finished[];
}

const LONGEST_MS = 100 * 365 * UNITS.days;

/** What is wrong with it, in words for the person who chose. */
export function faultOf({ age, unit, statuses }: CleanUpChoice): string | null {
  const value = Number(age);
  if (age.trim() === "" || !Number.isFinite(value) || value < 0) return "Give an age: a number of 0 or more.";
  if (value * UNITS[unit] > LONGEST_MS) return "Give an age of less than a hundred years.";
  return statuses.length === 0 ? "Choose at least one status." : null;
}

/** The moment is settled once, so that what was counted is what is deleted. */
export function cleanUpQuery({ age, unit, statuses }: CleanUpChoice, now: number): CleanUpQuery {
  return { olderThan: new Date(now - Number(age) * UNITS[unit]).toISOString(), status: [...statuses] };
}
