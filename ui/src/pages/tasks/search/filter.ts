/** What a search means. The text is the truth: check-boxes and drop-downs read it and write it anew. */
import { STATUSES, type TaskStatus } from "@/api/model";
import { quote, quoteWord, type Token, tokenize } from "@/pages/tasks/search/tokens";

export const WINDOWS = { "15m": 15, "1h": 60, "24h": 1440, "7d": 10_080 } as const;
/** A time up to now. */
export type Window = keyof typeof WINDOWS;

export type Pair = readonly [key: string, value: string];

export interface Filter {
  types: readonly string[];
  /** From `type:mail.*`. */
  prefix: string | null;
  statuses: readonly TaskStatus[];
  /** Bare words, looked for in all that a list shows. */
  words: readonly string[];
  tags: readonly Pair[];
  payload: readonly Pair[];
  idempotency: string | null;
  error: string | null;
  ids: readonly string[];
  /** The last digits of ids. */
  shortIds: readonly string[];
  /** The ID of a flow. */
  flow: string | null;
  worker: string | null;
  finished: boolean | null;
  last: Window | null;
  /** ISO 8601, in UTC. */
  after: string | null;
  before: string | null;
  /** The others are about when it was created. */
  ended: Window | null;
}

export const NOTHING: Filter = {
  types: [],
  prefix: null,
  statuses: [],
  words: [],
  tags: [],
  payload: [],
  idempotency: null,
  error: null,
  ids: [],
  shortIds: [],
  flow: null,
  worker: null,
  finished: null,
  last: null,
  after: null,
  before: null,
  ended: null,
};

export const QUALIFIERS = {
  type: "of this type; mail.* for all that start so",
  status: STATUSES.join(", "),
  tag: "key=value",
  payload: "name=value, name.name=value further in",
  idempotency: "the idempotency key",
  error: "text in the error",
  id: "the ID of a task, or the 12 digits that are shown",
  flow: "the ID of a flow",
  worker: "running under this worker",
  finished: "yes or no: failed for good, or waiting for a retry",
  last: `created in the last ${Object.keys(WINDOWS).join(", ")}`,
  ended: `ended in the last ${Object.keys(WINDOWS).join(", ")}`,
  failed: `failed for good in the last ${Object.keys(WINDOWS).join(", ")}`,
  after: "created after this time",
  before: "created before this time",
} as const;
export type Qualifier = keyof typeof QUALIFIERS;

export interface Problem {
  message: string;
  /** Where the faulty word is. */
  start: number;
  end: number;
  /** Words that were perhaps meant instead. */
  instead: readonly string[];
}

export interface Parsed {
  filter: Filter;
  problems: readonly Problem[];
}

const MOST_IDS = 100;
const MOST_WORDS = 10;
const SHORT_ID = /^[0-9a-f]{12}$/i;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const DAY = /^\d{4}-\d\d-\d\d$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/i;

/** Whether tasks of these statuses can be listed in the order in which they ended. */
export function isByEnd(statuses: readonly TaskStatus[]): boolean {
  return statuses.length > 0 && statuses.every((status) => status === "failed" || status === "cancelled");
}

/** Whether it asks for what no index has, so that a page looks at so many tasks only. */
export function searches(filter: Filter): boolean {
  const { words, tags, payload, shortIds, error, ended } = filter;
  return [words, tags, payload, shortIds].some((given) => given.length > 0) || error !== null || ended !== null;
}

export const isId = (text: string): boolean => UUID.test(text);

export function parse(text: string): Parsed {
  const problems: Problem[] = [];
  let filter = NOTHING;
  const tokens = tokenize(text);
  for (const token of tokens) {
    try {
      filter = { ...filter, ...read(token, filter) };
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      problems.push({ message: error.message, start: token.start, end: token.end, instead: error.instead });
    }
  }
  const everywhere = { start: 0, end: text.length, instead: [] };
  if (filter.last && (filter.after || filter.before)) {
    problems.push({ ...everywhere, message: "last: does not go with after: or before:. Keep one of them." });
  }
  if (filter.after && filter.before && filter.after >= filter.before) {
    problems.push({ ...everywhere, message: "after: must be earlier than before:." });
  }
  const keys = tokens.map(({ key }) => key);
  if (keys.includes("failed") && ["status", "finished", "ended"].some((key) => keys.includes(key))) {
    problems.push({
      ...everywhere,
      message: "failed: does not go with status:, finished: or ended:. It says them all.",
    });
  } else if (filter.ended && filter.finished === false) {
    problems.push({
      ...everywhere,
      message: "What waits for a retry has not ended: finished:no does not go with ended:.",
    });
  }
  return { filter, problems };
}

class Misread extends Error {
  constructor(
    message: string,
    readonly instead: readonly string[] = [],
  ) {
    super(message);
  }
}

function read({ key, value, open }: Token, had: Filter): Partial<Filter> {
  if (open) throw new Misread('A quote is not closed: add a " at the end.');
  if (key === null) return readWord(value, had);
  if (!isQualifier(key)) {
    const pair = quote(`${key}=${value}`);
    const meant =
      value === "" ? [] : [`tag:${pair}`, `payload:${pair}`, `"${key}:${quote(value).replaceAll('"', "")}"`];
    throw new Misread(`There is no ${key}: to search by. Known are: ${known()}.`, meant);
  }
  if (value === "") throw new Misread(`${key}: needs a value: ${QUALIFIERS[key]}.`);
  return READERS[key](value, had);
}

function readWord(value: string, had: Filter): Partial<Filter> {
  if (isId(value)) return READERS.id(value, had);
  if (value === "") return {};
  const words = union(had.words, [value]);
  if (words.length > MOST_WORDS) throw new Misread(`A search takes ${MOST_WORDS} words at most.`);
  return { words };
}

function readPair(kind: "tag" | "payload", value: string, had: readonly Pair[]): Pair[] {
  const [, key, wanted] = /^([^=:]+)[=:](.*)$/s.exec(value) ?? [];
  if (!key || wanted === undefined) throw new Misread(`Write it as ${kind}:key=value, not “${value}”.`);
  const other = had.find(([name]) => name === key);
  if (other && other[1] !== wanted) throw new Misread(`“${key}” cannot have two values at once.`);
  return other ? [...had] : [...had, [key, wanted]];
}

/** As people write it, and as the API takes it. */
const YES_OR_NO: Record<string, boolean> = { yes: true, true: true, no: false, false: false };

const READERS: Record<Qualifier, (value: string, had: Filter) => Partial<Filter>> = {
  type: (value, had) => {
    if (!value.endsWith("*")) return { types: union(had.types, [value]) };
    if (value === "*") return {};
    if (had.prefix && had.prefix !== value.slice(0, -1)) throw new Misread("type: takes one name with a * only.");
    return { prefix: value.slice(0, -1) };
  },
  status: (value, had) => ({ statuses: union(had.statuses, value.split(",").filter(Boolean).map(readStatus)) }),
  tag: (value, had) => ({ tags: readPair("tag", value, had.tags) }),
  payload: (value, had) => ({ payload: readPair("payload", value, had.payload) }),
  idempotency: (value, had) => ({ idempotency: once("idempotency", had.idempotency, value) }),
  error: (value, had) => ({ error: once("error", had.error, value) }),
  id: (value, had) => {
    if (SHORT_ID.test(value)) return { shortIds: union(had.shortIds, [value.toLowerCase()]) };
    if (!isId(value)) {
      throw new Misread(`“${value}” is not an ID: those have 36 characters, of which lists show the last 12.`);
    }
    const ids = union(had.ids, [value.toLowerCase()]);
    if (ids.length > MOST_IDS) throw new Misread(`A search takes ${MOST_IDS} IDs at most.`);
    return { ids };
  },
  flow: (value, had) => {
    if (!isId(value)) throw new Misread(`flow: is the ID of a flow, which has 36 characters, not “${value}”.`);
    return { flow: once("flow", had.flow, value.toLowerCase()) };
  },
  worker: (value, had) => ({ worker: once("worker", had.worker, value) }),
  finished: (value) => {
    const finished = YES_OR_NO[value.toLowerCase()];
    if (finished === undefined) throw new Misread(`finished: is yes or no, not “${value}”.`);
    return { finished };
  },
  last: (value, had) => ({ last: once("last", had.last, readWindow("last", value)) }),
  ended: (value, had) => ({ ended: once("ended", had.ended, readWindow("ended", value)) }),
  failed: (value, had) => ({
    statuses: ["failed"],
    finished: true,
    ended: once("failed", had.ended, readWindow("failed", value)),
  }),
  after: (value, had) => ({ after: once("after", had.after, readTime("after", value)) }),
  before: (value, had) => ({ before: once("before", had.before, readTime("before", value)) }),
};

function readStatus(value: string): TaskStatus {
  const found = STATUSES.find((status) => status === value.toLowerCase());
  if (!found) throw new Misread(`There is no status “${value}”. Known are: ${STATUSES.join(", ")}.`);
  return found;
}

function readWindow(key: string, value: string): Window {
  const window = Object.keys(WINDOWS).find((each): each is Window => each === value.toLowerCase());
  if (!window) throw new Misread(`${key}: is one of ${Object.keys(WINDOWS).join(", ")}, not “${value}”.`);
  return window;
}

/** Without a zone it is the viewer's. */
function readTime(key: string, value: string): string {
  const at = TIME.test(value) ? Date.parse(value) : DAY.test(value) ? Date.parse(`${value}T00:00`) : Number.NaN;
  if (Number.isNaN(at)) {
    throw new Misread(`${key}: is a time like 2030-12-31 or 2030-12-31T08:00:00Z, not “${value}”.`);
  }
  return new Date(at).toISOString();
}

function once<Value>(key: string, had: Value | null, value: Value): Value {
  if (had !== null && had !== value) throw new Misread(`${key}: can be given once only.`);
  return value;
}

function union<Value>(had: readonly Value[], more: readonly Value[]): Value[] {
  return [...new Set([...had, ...more])];
}

function isQualifier(key: string): key is Qualifier {
  return Object.hasOwn(QUALIFIERS, key);
}

function known(): string {
  return Object.keys(QUALIFIERS)
    .map((key) => `${key}:`)
    .join(", ");
}

/** The search that means this, always in the same order. */
export function write(filter: Filter): string {
  const words = [
    ...filter.types.map((type) => `type:${quote(type)}`),
    filter.prefix && `type:${quote(`${filter.prefix}*`)}`,
    filter.statuses.length > 0 && `status:${STATUSES.filter((each) => filter.statuses.includes(each)).join(",")}`,
    ...filter.words.map(quoteWord),
    ...filter.tags.map(([key, value]) => `tag:${quote(`${key}=${value}`)}`),
    ...filter.payload.map(([key, value]) => `payload:${quote(`${key}=${value}`)}`),
    filter.idempotency !== null && `idempotency:${quote(filter.idempotency)}`,
    filter.error !== null && `error:${quote(filter.error)}`,
    ...filter.ids.map((id) => `id:${id}`),
    ...filter.shortIds.map((id) => `id:${id}`),
    filter.flow !== null && `flow:${filter.flow}`,
    filter.worker !== null && `worker:${quote(filter.worker)}`,
    filter.finished !== null && `finished:${filter.finished ? "yes" : "no"}`,
    filter.last && `last:${filter.last}`,
    filter.ended && `ended:${filter.ended}`,
    filter.after && `after:${filter.after}`,
    filter.before && `before:${filter.before}`,
  ];
  return words.filter(Boolean).join(" ");
}
