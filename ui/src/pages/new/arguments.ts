/** From the JSON Schema of a type's arguments to the fields of a form, and from what was typed to a payload. */
import { ExactNumber, parse, stringify } from "@/api/exact";

export interface Argument {
  name: string;
  kind: "text" | "number" | "truth" | "choice" | "json";
  required: boolean;
  /** What it is, in the words of the schema. */
  hint: string;
  /** Of a choice, as JSON. */
  choices: readonly string[];
  /** What holds where nothing is given, as JSON; null: it has to be given, or the code knows. */
  standard: string | null;
}

type Schema = Record<string, unknown>;

/** What a field holds: the text itself, or JSON. Empty is left out. */
export type Draft = Readonly<Record<string, string>>;

/** The fields; null where the schema describes no set of named arguments. */
export function argumentsOf(schema: unknown): Argument[] | null {
  if (!isObject(schema) || !isObject(schema["properties"])) return null;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).map(([name, given]) => {
    const found = resolved(given, schema);
    const choices = choicesOf(found);
    const standard = isObject(given) && "default" in given ? stringify(given["default"]) : null;
    const hint = hintOf(given, found, standard);
    return { name, kind: kindOf(found, choices), required: required.includes(name), hint, choices, standard };
  });
}

function kindOf(schema: Schema, choices: readonly string[]): Argument["kind"] {
  if (choices.length > 0) return "choice";
  switch (schema["type"]) {
    case "string":
      return "text";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "truth";
    default:
      return "json";
  }
}

/** Behind its reference, and without its null. */
function resolved(given: unknown, root: Schema): Schema {
  if (!isObject(given)) return {};
  const reference = given["$ref"];
  if (typeof reference === "string" && reference.startsWith("#/$defs/") && isObject(root["$defs"])) {
    return resolved(root["$defs"][reference.slice("#/$defs/".length)], { ...root, $defs: { ...root["$defs"] } });
  }
  const either = given["anyOf"];
  if (Array.isArray(either)) {
    const others = either.filter((each) => !(isObject(each) && each["type"] === "null"));
    return others.length === 1 ? resolved(others[0], root) : {};
  }
  return given;
}

function choicesOf(schema: Schema): string[] {
  const given = Array.isArray(schema["enum"]) ? schema["enum"] : "const" in schema ? [schema["const"]] : [];
  return given.map((each) => stringify(each, 0));
}

function hintOf(given: unknown, found: Schema, standard: string | null): string {
  const said = [isObject(given) ? given["description"] : undefined, found["description"]].find(
    (each) => typeof each === "string",
  );
  const unlessGiven = standard === null ? "" : `${standard} unless given`;
  return [said, kindShown(found), unlessGiven].filter(Boolean).join(", ");
}

/** Choices speak for themselves, and what has no field of its own is written as JSON. */
function kindShown(schema: Schema): string {
  if (choicesOf(schema).length > 0) return "";
  const { format, type } = schema;
  if (kindOf(schema, []) === "json") return typeof type === "string" ? `JSON ${type}` : "JSON";
  return String(typeof format === "string" ? format : type);
}

/** What is in a payload, for its fields. Null: it has what no field can hold. */
export function draftOf(payload: unknown, fields: readonly Argument[]): Draft | null {
  if (!isObject(payload)) return null;
  const known = new Map(fields.map((field) => [field.name, field]));
  const draft: Record<string, string> = {};
  for (const [name, value] of Object.entries(payload)) {
    const field = known.get(name);
    if (!field) return null;
    const text = stringify(value);
    if (field.kind !== "text") draft[name] = text;
    else if (typeof value === "string" && value !== "") draft[name] = value;
    else if (text !== field.standard) return null; // in a field for text, nothing is left out and null is a word
  }
  return draft;
}

export interface Payload {
  payload: Record<string, unknown>;
  /** What is wrong, by the name of the field. */
  faults: Record<string, string>;
}

export function payloadOf(draft: Draft, fields: readonly Argument[]): Payload {
  const payload: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of fields) {
    const text = draft[field.name] ?? "";
    if (text === "") {
      if (field.required) faults[field.name] = "It has no value of its own: fill it in.";
    } else {
      try {
        payload[field.name] = valueIn(text, field.kind);
      } catch (error) {
        faults[field.name] = error instanceof Error ? error.message : String(error);
      }
    }
  }
  return { payload, faults };
}

function valueIn(text: string, kind: Argument["kind"]): unknown {
  if (kind === "text") return text;
  const value = readJson(text);
  if (kind === "number" && typeof value !== "number" && !(value instanceof ExactNumber) && value !== null) {
    throw new Error("Write a number.");
  }
  return value;
}

/** Any JSON, every digit kept. Throws what can be said to people. */
export function readJson(text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}
