/** JSON without loss: a number that JavaScript would change (2^53 + 1, 1.0, 1e400) is kept as it was written. */

export class ExactNumber {
  constructor(readonly source: string) {}

  toString(): string {
    return this.source;
  }
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Numbers that do not survive are hidden in strings with a mark that no text can hold, and brought back from there. */
export function parse(text: string): unknown {
  const mark = `\u0000${crypto.getRandomValues(new Uint32Array(2)).join("")}:`;
  let hidden = false;
  const safe = text.replace(TOKENS, (token) => {
    if (token.startsWith('"') || String(Number(token)) === token) return token;
    hidden = true;
    return JSON.stringify(mark + token);
  });
  if (!hidden) return JSON.parse(text);
  return JSON.parse(safe, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value,
  );
}

/** The JSON that `parse` read, to the digit. */
export function stringify(value: unknown, indent = 2): string {
  return write(value, indent > 0 ? "\n" : "", " ".repeat(indent));
}

function write(value: unknown, line: string, step: string): string {
  if (value instanceof ExactNumber) return value.source;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inner = line && line + step;
  const colon = line ? ": " : ":";
  const [open, close, parts] = Array.isArray(value)
    ? ["[", "]", value.map((item) => write(item, inner, step))]
    : ["{", "}", Object.entries(value).map(([key, item]) => JSON.stringify(key) + colon + write(item, inner, step))];
  return parts.length ? open + inner + parts.join(`,${inner}`) + line + close : open + close;
}

/** Turns exact numbers back to plain ones everywhere but in what users wrote: our own fields are typed as numbers. */
export function plain(value: unknown): unknown {
  if (value instanceof ExactNumber) return Number(value.source);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  const free = freeFields(value);
  const entries = Object.entries(value).map(([key, item]) => [key, free.includes(key) ? item : plain(item)]);
  return Object.fromEntries(entries);
}

function freeFields(value: object): readonly string[] {
  // By shape and not by name alone: a task type may be called "payload" too.
  if ("id" in value && typeof value.id === "string" && "payload" in value) return ["payload", "result", "tags"];
  if ("actor" in value && typeof value.actor === "string" && "detail" in value) return ["detail"];
  return [];
}
