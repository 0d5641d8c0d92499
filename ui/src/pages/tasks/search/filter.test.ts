import { expect, it } from "vitest";
import { type Filter, NOTHING, parse, write } from "@/pages/tasks/search/filter";
import { toBulkFilter, toTaskQuery } from "@/pages/tasks/search/requests";

const ID = "0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10";

function read(text: string): Filter {
  const { filter, problems } = parse(text);
  expect(problems).toEqual([]);
  return filter;
}

it.each<[string, Partial<Filter>]>([
  ["", {}],
  ["  type:a  type:b type:a ", { types: ["a", "b"] }],
  ["TYPE:a", { types: ["a"] }],
  ["type:mail.*", { prefix: "mail." }],
  ["type:*", {}],
  ["status:failed,pending status:FAILED", { statuses: ["failed", "pending"] }],
  [
    "tag:team=red tag:size:xl",
    {
      tags: [
        ["team", "red"],
        ["size", "xl"],
      ],
    },
  ],
  ['tag:"a key=some = value"', { tags: [["a key", "some = value"]] }],
  ['tag:team="red one"', { tags: [["team", "red one"]] }],
  ["tag:empty=", { tags: [["empty", ""]] }],
  ['error:"a \\"quoted\\" \\\\ word"', { error: 'a "quoted" \\ word' }],
  ["error:C:\\temp", { error: "C:\\temp" }],
  ["error:a:b", { error: "a:b" }],
  [ID.toUpperCase(), { ids: [ID] }],
  [`id:${ID} ${ID}`, { ids: [ID] }],
  ["4711 ada 4711", { words: ["4711", "ada"] }],
  ['"two words" ""', { words: ["two words"] }],
  ['"type:a"', { words: ["type:a"] }],
  ["https://example.com/x", { words: ["https://example.com/x"] }],
  ["0C1A5F3E9D10", { words: ["0C1A5F3E9D10"] }],
  ["id:0C1A5F3E9D10", { shortIds: ["0c1a5f3e9d10"] }],
  [
    "payload:order_id=4711 payload:order.city=Ulm",
    {
      payload: [
        ["order_id", "4711"],
        ["order.city", "Ulm"],
      ],
    },
  ],
  ["idempotency:order-4711", { idempotency: "order-4711" }],
  [`flow:${ID.toUpperCase()} flow:${ID}`, { flow: ID }],
  ["worker:host-1", { worker: "host-1" }],
  ["finished:no", { finished: false }],
  ["finished:false", { finished: false }],
  ["finished:TRUE", { finished: true }],
  ["last:24H", { last: "24h" }],
  ["ended:1H", { ended: "1h" }],
  ["failed:24h", { statuses: ["failed"], finished: true, ended: "24h" }],
  ["after:2030-01-01T10:00:00+02:00", { after: "2030-01-01T08:00:00.000Z" }],
])("reads %s", (text, filter) => expect(read(text)).toEqual({ ...NOTHING, ...filter }));

it.each([
  ["colour:red", "There is no colour:"],
  ["constructor:x", "There is no constructor:"],
  ["status:done", "There is no status “done”"],
  ["type:", "type: needs a value"],
  ["1 2 3 4 5 6 7 8 9 10 11", "10 words at most"],
  ["payload:alone", "payload:key=value"],
  ["payload:a=1 payload:a=2", "cannot have two values"],
  ["idempotency:a idempotency:b", "can be given once only"],
  ['error:"open', "A quote is not closed"],
  ["error:a error:b", "error: can be given once only"],
  ["tag:alone", "tag:key=value"],
  ["tag:a=1 tag:a=2", "cannot have two values"],
  ["id:123", "is not an ID"],
  ["type:a* type:b*", "one name with a *"],
  ["finished:maybe", "yes or no"],
  ["last:2h", "last: is one of 15m, 1h, 24h, 7d"],
  ["ended:2h", "ended: is one of 15m, 1h, 24h, 7d"],
  ["failed:printer", "failed: is one of 15m, 1h, 24h, 7d"],
  ["failed:1h status:completed", "failed: does not go with"],
  ["finished:no failed:1h", "failed: does not go with"],
  ["ended:1h failed:1h", "failed: does not go with"],
  ["ended:1h finished:no", "has not ended"],
  ["after:yesterday", "is a time like"],
  ["after:2030-13-45", "is a time like"],
  ["last:1h after:2030-01-01", "does not go with"],
  ["after:2030-01-02 before:2030-01-01", "must be earlier"],
])("says what is wrong with %s", (text, said) => {
  const { problems } = parse(text);
  expect(problems).toHaveLength(1);
  expect(problems[0]?.message).toContain(said);
});

it("says where a word is wrong, and what was perhaps meant", () => {
  const [problem] = parse("status:failed colour:red type:a").problems;
  const instead = ["tag:colour=red", "payload:colour=red", '"colour:red"'];
  expect(problem).toMatchObject({ start: 14, end: 24, instead });
  for (const word of instead) expect(parse(word).problems).toEqual([]);
});

it("writes what it reads back to the same, whatever is in it", () => {
  const odd = ['a"b', "a\\b c", "line\nbreak\ttab", "\u202eabc", "\\u0041 x", "a,b", "tag:x", "ü 😀 ", "*", "<b>"];
  for (const text of odd) {
    const filter: Filter = {
      ...NOTHING,
      types: [`${text}.`],
      error: text,
      worker: text,
      tags: [["k", text]],
      words: [text],
    };
    const written = write(filter);
    expect(read(written)).toEqual(filter);
    expect(written).not.toMatch(/[\n\t\u202e]/);
  }
});

it("writes statuses in one order and everything else too", () => {
  const text = `type:a type:b* status:pending,failed word tag:k=v payload:n=1 idempotency:k error:x id:${ID} id:0c1a5f3e9d10 worker:w finished:yes last:1h ended:24h`;
  expect(write(read(text.split(" ").reverse().join(" ")))).toBe(text);
});

it("writes what failed lately in the words that the check-boxes know", () => {
  expect(write(read("failed:1h type:a"))).toBe("type:a status:failed finished:yes ended:1h");
});

it("asks the list and the bulk actions for the same", () => {
  const filter = read(`type:a status:failed tag:k=a:b error:x id:${ID} worker:w finished:no last:15m`);
  const minute = Date.parse("2030-01-01T12:00:00Z") / 60_000;
  const shared = {
    type: ["a"],
    status: ["failed"],
    error: "x",
    worker: "w",
    finished: false,
    createdAfter: "2030-01-01T11:45:00.000Z",
  };
  expect(toTaskQuery(filter, minute)).toEqual({ ...shared, tag: ["k:a:b"], id: [ID] });
  expect(toBulkFilter(filter, minute)).toEqual({ ...shared, tags: { k: "a:b" }, ids: [ID] });
  const words = read("4711 payload:a.b=c:d idempotency:k id:0c1a5f3e9d10");
  const same = { idempotencyKey: "k" };
  expect(toTaskQuery(words, minute)).toEqual({
    ...same,
    word: ["4711"],
    payload: ["a.b:c:d"],
    shortId: ["0c1a5f3e9d10"],
  });
  expect(toBulkFilter(words, minute)).toEqual({
    ...same,
    words: ["4711"],
    payload: { "a.b": "c:d" },
    shortIds: ["0c1a5f3e9d10"],
  });
  const failed = {
    status: ["failed"],
    finished: true,
    createdAfter: "2030-01-01T11:45:00.000Z",
    endedAfter: "2030-01-01T11:00:00.000Z",
  };
  expect(toTaskQuery(read("failed:1h last:15m"), minute)).toEqual(failed);
  expect(toBulkFilter(read("failed:1h last:15m"), minute)).toEqual(failed);
  expect(toBulkFilter(read("type:m* before:2030-01-01T00:00:00Z"), minute)).toEqual({
    namePrefix: "m",
    createdBefore: "2030-01-01T00:00:00.000Z",
  });
});
