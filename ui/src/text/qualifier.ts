/** The text of a search, as the list of tasks reads it: `type:send_email status:failed`. */
export type Qualifiers = Partial<Record<"type" | "status" | "worker" | "id" | "tag" | "error", string>>;

export function qualified(given: Qualifiers): string {
  return Object.entries(given)
    .map(([name, value]) => `${name}:${quoted(value)}`)
    .join(" ");
}

/** Names may hold spaces, quotes and colons; plain ones stay plain. */
function quoted(value: string): string {
  return /^[\w.@/-]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}
