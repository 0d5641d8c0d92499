/** The words of a search: `type:send_email error:"connection refused"`. */
import { escapeText } from "@/text/escape";

export interface Token {
  /** Lower case, without the colon; null for a word without one. */
  key: string | null;
  /** Quotes and escapes resolved. */
  value: string;
  start: number;
  end: number;
  /** A quote was opened and not closed. */
  open: boolean;
}

/** An address is no qualifier. */
const KEY = /^([A-Za-z]+):(?!\/\/)/;
const ESCAPES: Record<string, string> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };

export function tokenize(text: string): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text.charAt(at))) at += 1;
    else {
      const token = readToken(text, at);
      found.push(token);
      at = token.end;
    }
  }
  return found;
}

function readToken(text: string, start: number): Token {
  const key = KEY.exec(text.slice(start))?.[1] ?? null;
  let at = start + (key === null ? 0 : key.length + 1);
  let value = "";
  let quoted = false;
  while (at < text.length) {
    const char = text.charAt(at);
    if (!quoted && /\s/.test(char)) break;
    if (char === '"') quoted = !quoted;
    else if (quoted && char === "\\") {
      const [meant, length] = unescaped(text, at);
      value += meant;
      at += length;
      continue;
    } else value += char;
    at += 1;
  }
  return { key: key?.toLowerCase() ?? null, value, start, end: at, open: quoted };
}

function unescaped(text: string, at: number): [meant: string, length: number] {
  const next = text.charAt(at + 1);
  const code = /^u([0-9a-fA-F]{4})/.exec(text.slice(at + 1, at + 6))?.[1];
  if (code) return [String.fromCharCode(Number.parseInt(code, 16)), 6];
  const known = ESCAPES[next];
  return known === undefined ? ["\\", 1] : [known, 2];
}

/** A word without a qualifier: in quotes where it looks like one. */
export function quoteWord(value: string): string {
  return KEY.test(value) && quote(value) === value ? `"${value.replace(/\\/g, "\\\\")}"` : quote(value);
}

/** As it must be written for `tokenize` to give it back. Nothing in it is invisible or breaks the line. */
export function quote(value: string): string {
  if (value !== "" && !/[\s"]/.test(value) && escapeText(value) === value) return value;
  return `"${escapeText(value.replace(/["\\]/g, "\\$&"))}"`;
}
