/** Characters that show as nothing, or as something else than they are: names and payloads are other people's text. */

// Control characters, bidirectional overrides and isolates, invisible spaces and marks, halves of surrogate pairs.
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export interface Piece {
  text: string;
  /** The code point, where the text is an escape that stands for it. */
  stands: string | null;
}

export function pieces(text: string, multiline = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(UNSAFE)) {
    const char = match[0];
    if (multiline && (char === "\n" || char === "\t")) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index), stands: null });
    found.push({ text: escapeOf(char), stands: `U+${hex(char).toUpperCase()}` });
    from = match.index + char.length;
  }
  if (from < text.length) found.push({ text: text.slice(from), stands: null });
  return found;
}

/** For attributes and titles, which can hold no elements. */
export function escapeText(text: string): string {
  return pieces(text)
    .map((piece) => piece.text)
    .join("");
}

function escapeOf(char: string): string {
  return { "\n": "\\n", "\t": "\\t", "\r": "\\r" }[char] ?? `\\u${hex(char)}`;
}

function hex(char: string): string {
  return char.charCodeAt(0).toString(16).padStart(4, "0");
}
