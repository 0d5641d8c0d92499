/** Schemas in words, and examples made from them. */
import { type ApiDocument, bodyOf, type Endpoint, nameOf, resolve, type Schema } from "@/pages/api-docs/document";

/** What a value is: `list of string`, `TaskView or null`. */
export function typeOf(document: ApiDocument, schema: Schema): string {
  const name = nameOf(schema);
  if (name !== null) {
    const found = resolve(document, schema);
    return found.enum ? typeOf(document, found) : name;
  }
  if (schema.anyOf) return [...new Set(schema.anyOf.map((choice) => typeOf(document, choice)))].join(" or ");
  if (schema.allOf?.[0]) return typeOf(document, schema.allOf[0]);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.type === "array") return schema.items ? `list of ${typeOf(document, schema.items)}` : "list";
  if (schema.type === "object" && typeof schema.additionalProperties === "object")
    return `object of ${typeOf(document, schema.additionalProperties)}`;
  if (!schema.type) return "any JSON";
  return schema.format ? `${schema.type} (${schema.format})` : schema.type;
}

/** What is asked of it: `1 to 100`, `default 50`. */
export function limitsOf(document: ApiDocument, schema: Schema): string {
  const found = resolve(document, schema.anyOf?.find((choice) => choice.type !== "null") ?? schema);
  const words = [
    between(found.minimum ?? found.exclusiveMinimum, found.maximum ?? found.exclusiveMaximum, ""),
    between(found.minLength, found.maxLength, " characters"),
    between(found.minItems, found.maxItems, " items"),
    found.pattern ? `like ${found.pattern}` : "",
    schema.default !== undefined && schema.default !== null ? `default ${JSON.stringify(schema.default)}` : "",
  ];
  return words.filter(Boolean).join("; ");
}

function between(least: number | undefined, most: number | undefined, unit: string): string {
  const [low, high] = [least, most].map((bound) => bound?.toLocaleString("en"));
  if (low !== undefined && high !== undefined) return low === high ? `${low}${unit}` : `${low} to ${high}${unit}`;
  if (low !== undefined) return `at least ${low}${unit}`;
  return high === undefined ? "" : `at most ${high}${unit}`;
}

const TEXTS: Record<string, string> = {
  uuid: "0198a6f2-7c31-7000-8000-5d0c2b1a9e44",
  "date-time": "2030-12-31T08:00:00Z",
};
const DEEPEST = 4;

/** A value that fits. Of objects, what is required; where nothing is, the first field. */
export function exampleOf(document: ApiDocument, schema: Schema, depth = 0): unknown {
  const found = resolve(document, schema);
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum[0];
  if (found.default !== undefined && found.default !== null) return found.default;
  const choice = found.anyOf?.find(({ type }) => type !== "null") ?? found.allOf?.[0];
  if (choice) return exampleOf(document, choice, depth);
  switch (found.type) {
    case "string":
      return TEXTS[found.format ?? ""] ?? "text";
    case "integer":
    case "number":
      return Math.max(1, found.minimum ?? 1);
    case "boolean":
      return true;
    case "array":
      return depth < DEEPEST && found.items ? [exampleOf(document, found.items, depth + 1)] : [];
    default:
      return exampleObject(document, found, depth);
  }
}

function exampleObject(document: ApiDocument, schema: Schema, depth: number): unknown {
  const fields = Object.entries(schema.properties ?? {});
  const required = fields.filter(([name]) => schema.required?.includes(name));
  if (depth >= DEEPEST) return {};
  const chosen = required.length ? required : fields.slice(0, 1);
  return Object.fromEntries(chosen.map(([name, field]) => [name, exampleOf(document, field, depth + 1)]));
}

/** A command line that asks for it, with the token in a variable. */
export function curlOf(document: ApiDocument, endpoint: Endpoint, base: string): string {
  const { operation, method } = endpoint;
  const given = (operation.parameters ?? []).filter(({ required }) => required);
  const path = given
    .filter((parameter) => parameter.in === "path")
    .reduce((so, { name, schema }) => so.replace(`{${name}}`, String(exampleOf(document, schema))), endpoint.path);
  const asked = given
    .filter((parameter) => parameter.in === "query")
    .map(({ name, schema }) => `${name}=${encodeURIComponent(String(exampleOf(document, schema)))}`);
  const lines = [`curl -s ${quoted(`${base.replace(/\/$/, "")}${path}${asked.length ? `?${asked.join("&")}` : ""}`)}`];
  const body = bodyOf(operation);
  if (method !== "GET" && !(method === "POST" && body)) lines[0] += ` -X ${method}`;
  if (operation.security?.length !== 0) lines.push('-H "Authorization: Bearer $TASKLIB_TOKEN"');
  if (body)
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(exampleOf(document, body)))}`);
  return lines.join(" \\\n  ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
