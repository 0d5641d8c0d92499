import { expect, it } from "vitest";
import { stringify } from "@/api/exact";
import { argumentsOf, draftOf, payloadOf, readJson } from "@/pages/new/arguments";

const SCHEMA = {
  type: "object",
  $defs: { Size: { enum: ["small", "large"], type: "string" } },
  properties: {
    to: { type: "string", description: "whom" },
    copies: { type: "integer", default: 1 },
    loud: { anyOf: [{ type: "boolean" }, { type: "null" }], default: null },
    size: { $ref: "#/$defs/Size" },
    lines: { type: "array" },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
  },
  required: ["to"],
};

it("makes a field of each argument", () => {
  const fields = argumentsOf(SCHEMA) ?? [];
  expect(fields.map(({ name, kind }) => [name, kind])).toEqual([
    ["to", "text"],
    ["copies", "number"],
    ["loud", "truth"],
    ["size", "choice"],
    ["lines", "json"],
    ["either", "json"],
  ]);
  expect(fields[0]).toMatchObject({ required: true, hint: "whom, string" });
  expect(fields[1]?.hint).toBe("integer, 1 unless given");
  expect(fields[3]?.hint).toBe("");
  expect(fields.slice(4).map(({ hint }) => hint)).toEqual(["JSON array", "JSON"]);
  expect(fields[3]?.choices).toEqual(['"small"', '"large"']);
  expect(argumentsOf({ type: "array" })).toBeNull();
  expect(argumentsOf(null)).toBeNull();
});

it("makes a payload of what was typed, to the digit, and says what is wrong", () => {
  const fields = argumentsOf(SCHEMA) ?? [];
  const typed = { to: "007", copies: "18446744073709551617", loud: "true", size: '"large"', lines: "[1, 2]" };
  const { payload, faults } = payloadOf(typed, fields);
  expect(faults).toEqual({});
  expect(stringify(payload, 0)).toBe(
    '{"to":"007","copies":18446744073709551617,"loud":true,"size":"large","lines":[1,2]}',
  );
  expect(Object.keys(payloadOf({ copies: "many", lines: "[", either: "" }, fields).faults)).toEqual([
    "to",
    "copies",
    "lines",
  ]);
});

it("fills the form with a payload, unless there is more in it than the form has", () => {
  const fields = argumentsOf(SCHEMA) ?? [];
  const payload = readJson('{"to": "null", "copies": 1.0, "lines": [true]}');
  const draft = draftOf(payload, fields);
  expect(stringify(payloadOf(draft ?? {}, fields).payload, 0)).toBe('{"to":"null","copies":1.0,"lines":[true]}');
  expect(draftOf({ to: "" }, fields)).toBeNull();
  expect(draftOf({ to: "ada", more: 1 }, fields)).toBeNull();
  expect(draftOf([1], fields)).toBeNull();
});
