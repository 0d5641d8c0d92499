/** What could come next in a search, where the caret is. */
import { STATUSES } from "@/api/model";
import { isId, QUALIFIERS, type Qualifier, WINDOWS } from "@/pages/tasks/search/filter";
import { quote, type Token, tokenize } from "@/pages/tasks/search/tokens";

/** What the server knows of. */
export interface Known {
  types: readonly string[];
  workers: readonly string[];
  /** As key=value. */
  tags: readonly string[];
}

export interface Suggestion {
  /** Takes the place of the word at the caret. */
  text: string;
  detail: string;
  /** False: only a beginning, to which a value must be added. */
  whole: boolean;
}

export interface Suggestions {
  options: readonly Suggestion[];
  /** What may be written here, where there is nothing to choose from. */
  hint: string | null;
  from: number;
  to: number;
}

const MOST = Object.keys(QUALIFIERS).length;
const LOOKS_FOR = "Enter looks for the word in type, tags, idempotency key, short ID, error and payload.";

export function suggest(text: string, caret: number, known: Known): Suggestions {
  const token = tokenize(text).find(({ start, end }) => start <= caret && caret <= end);
  const place = { from: token?.start ?? caret, to: token?.end ?? caret };
  if (!token) return { ...place, hint: null, options: ofWord("", known) };
  if (token.key === null) return { ...place, hint: LOOKS_FOR, options: ofWord(token.value, known) };
  if (!Object.hasOwn(QUALIFIERS, token.key)) return { ...place, hint: null, options: ofWord(token.key, known) };
  const key = token.key as Qualifier;
  const options = ofValue(key, token, known);
  return { ...place, options, hint: options.length > 0 ? null : `${key}: ${QUALIFIERS[key]}` };
}

function ofWord(word: string, known: Known): Suggestion[] {
  const wanted = word.toLowerCase();
  if (isId(word)) return [{ text: `id:${wanted}`, detail: "this task", whole: true }];
  const keys = Object.entries(QUALIFIERS).filter(([key]) => key.startsWith(wanted));
  const found: Suggestion[] = keys.map(([key, detail]) => ({ text: `${key}:`, detail, whole: false }));
  if (word.length < 2) return found.slice(0, MOST);
  for (const status of STATUSES) {
    if (status.startsWith(wanted)) found.push({ text: `status:${status}`, detail: "status", whole: true });
  }
  for (const type of matching(known.types, word).slice(0, 5)) {
    found.push({ text: `type:${quote(type)}`, detail: "type", whole: true });
  }
  found.push({ text: `error:${quote(word)}`, detail: "text in the error", whole: true });
  return found.slice(0, MOST);
}

function ofValue(key: Qualifier, token: Token, known: Known): Suggestion[] {
  if (key === "status") return ofStatus(token.value);
  const values: Partial<Record<Qualifier, readonly string[]>> = {
    type: known.types,
    worker: known.workers,
    tag: known.tags,
    finished: ["yes", "no"],
    last: Object.keys(WINDOWS),
    ended: Object.keys(WINDOWS),
    failed: Object.keys(WINDOWS),
  };
  return matching(values[key] ?? [], token.value)
    .filter((value) => value !== token.value)
    .slice(0, MOST)
    .map((value) => ({ text: `${key}:${quote(value)}`, detail: "", whole: true }));
}

/** Several may stand in one word: status:failed,cancelled. */
function ofStatus(value: string): Suggestion[] {
  const given = value.toLowerCase().split(",");
  const last = given.pop() ?? "";
  return STATUSES.filter((status) => status.startsWith(last) && status !== last && !given.includes(status)).map(
    (status) => ({ text: `status:${[...given, status].join(",")}`, detail: "", whole: true }),
  );
}

/** Those that start so come first. */
function matching(values: readonly string[], word: string): string[] {
  const wanted = word.toLowerCase();
  const found = values.filter((value) => value.toLowerCase().includes(wanted));
  const starts = (value: string) => Number(value.toLowerCase().startsWith(wanted));
  return found.sort((a, b) => starts(b) - starts(a) || a.localeCompare(b));
}

/** The text with a suggestion taken, and where the caret is then. */
export function accept(text: string, { from, to }: Suggestions, chosen: Suggestion): { text: string; caret: number } {
  const rest = text.slice(to).trimStart();
  const start = text.slice(0, from) + chosen.text + (chosen.whole ? " " : "");
  return { text: start + (rest && !chosen.whole ? ` ${rest}` : rest), caret: start.length };
}
