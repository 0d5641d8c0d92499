import { ExactNumber } from "@/api/exact";

export function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(value instanceof ExactNumber);
}

export function entriesOf(value: object): [string, unknown][] {
  return Object.entries(value);
}

/** How many levels can be opened: none in a number, one in `{"a": 1}`. */
export function depthOf(value: unknown): number {
  if (!isContainer(value)) return 0;
  let deepest = 0;
  for (const item of Object.values(value)) deepest = Math.max(deepest, 1 + depthOf(item));
  return deepest;
}
