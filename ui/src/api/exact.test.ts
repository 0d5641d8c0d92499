import { describe, expect, it } from "vitest";
import { ExactNumber, parse, plain, stringify } from "@/api/exact";

describe("numbers", () => {
  it.each([
    "9007199254740993",
    "-9007199254740993",
    "123456789012345678901234567890",
    "1.0",
    "1e400",
    "0.10",
    "-0",
    "1E5",
  ])("%s comes back as it was written", (source) => {
    expect(stringify(parse(source), 0)).toBe(source);
    expect(stringify(parse(`{"a":[${source}]}`), 0)).toBe(`{"a":[${source}]}`);
  });

  it("keeps what JavaScript can hold as plain numbers", () => {
    expect(parse('{"a": 1, "b": -2.5, "c": 9007199254740991}')).toEqual({ a: 1, b: -2.5, c: 9007199254740991 });
  });

  it("leaves digits in strings alone", () => {
    const text = String.raw`{"9007199254740993":"9007199254740993 \" 1.0","n":1.0}`;
    expect(stringify(parse(text), 0)).toBe(text);
  });
});

it("reads hostile keys as keys", () => {
  const value = parse('{"__proto__": {"polluted": 1.0}, "constructor": 1}') as object;
  expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  expect(stringify(value, 0)).toBe('{"__proto__":{"polluted":1.0},"constructor":1}');
});

it("refuses what is no JSON", () => {
  for (const text of ["", "{", "01.50", "NaN", "[1.0,]"]) expect(() => parse(text)).toThrow();
});

it("writes like JSON.stringify", () => {
  const value = { a: [1, { b: null }], empty: {}, none: [], text: 'q"\n' };
  expect(stringify(value)).toBe(JSON.stringify(value, null, 2));
  expect(stringify(value, 0)).toBe(JSON.stringify(value));
});

it("keeps exact numbers only in what users wrote", () => {
  const text =
    '{"tasks":[{"id":"x","payload":{"n":1.0},"tags":{"t":2.0},"result":3.0,"runMs":4.0}],"byType":{"payload":{"s":5.0}}}';
  expect(plain(parse(text))).toEqual({
    tasks: [
      {
        id: "x",
        payload: { n: new ExactNumber("1.0") },
        tags: { t: new ExactNumber("2.0") },
        result: new ExactNumber("3.0"),
        runMs: 4,
      },
    ],
    byType: { payload: { s: 5 } },
  });
});
