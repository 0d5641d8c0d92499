/** Which columns the list shows beside ID, type and status: in the address, and remembered by the browser. */

export const LABELS = {
  arguments: "Arguments",
  error: "Error",
  tags: "Tags",
  idempotency: "Idempotency key",
  priority: "Priority",
  attempts: "Attempts",
  created: "Created",
  ended: "Ended",
  age: "Age",
  duration: "Duration",
  worker: "Worker",
} as const;
export type ColumnId = keyof typeof LABELS;

/** In the order in which they are shown. */
export const COLUMN_IDS = Object.keys(LABELS) as ColumnId[];
export const USUAL: readonly ColumnId[] = ["arguments", "attempts", "created", "duration"];
/** Text of any length: these share what the others leave. */
export const WIDE: readonly ColumnId[] = ["arguments", "error", "tags", "idempotency"];

const NONE = "none";
const KEY = "tasklib.columns";

export function readColumns(text: string | undefined): readonly ColumnId[] {
  if (!text) return USUAL;
  const names = text.split(",");
  return COLUMN_IDS.filter((id) => names.includes(id));
}

/** Nothing for the usual ones. */
export function writeColumns(columns: readonly ColumnId[]): string | undefined {
  const text = COLUMN_IDS.filter((id) => columns.includes(id)).join(",");
  return text === COLUMN_IDS.filter((id) => USUAL.includes(id)).join(",") ? undefined : text || NONE;
}

export function rememberedColumns(): string | undefined {
  try {
    return localStorage.getItem(KEY) ?? undefined;
  } catch {
    return undefined;
  }
}

export function rememberColumns(text: string | undefined): void {
  try {
    if (text) localStorage.setItem(KEY, text);
    else localStorage.removeItem(KEY);
  } catch {
    // A browser that keeps nothing: the address has them.
  }
}
