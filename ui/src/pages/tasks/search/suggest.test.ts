import { expect, it } from "vitest";
import { NOTHING } from "@/pages/tasks/search/filter";
import { notesOn } from "@/pages/tasks/search/notes";
import { accept, suggest } from "@/pages/tasks/search/suggest";

const KNOWN = { types: ["mail.send", "resend", "two words"], workers: ["host-1"], tags: ["team=red one"] };

function offered(text: string, caret = text.length): string[] {
  return suggest(text, caret, KNOWN).options.map((option) => option.text);
}

it("offers every qualifier at the start, and at a space", () => {
  expect(offered("")).toEqual(expect.arrayContaining(["type:", "status:", "tag:", "error:", "id:", "worker:"]));
  expect(offered("status:failed ")).toEqual(offered(""));
});

it.each([
  ["st", ["status:", "error:st"]],
  ["fa", ["failed:", "status:failed", "error:fa"]],
  ["send", ["type:resend", "type:mail.send", "error:send"]],
  ["type:SEND", ["type:mail.send", "type:resend"]],
  ["type:two", ['type:"two words"']],
  ["type:resend", []],
  ["status:", ["status:pending", "status:processing", "status:completed", "status:failed", "status:cancelled"]],
  ["status:failed,p", ["status:failed,pending", "status:failed,processing"]],
  ["worker:", ["worker:host-1"]],
  ["tag:team", ['tag:"team=red one"']],
  ["last:", ["last:15m", "last:1h", "last:24h", "last:7d"]],
  ["ended:", ["ended:15m", "ended:1h", "ended:24h", "ended:7d"]],
  ["failed:1", ["failed:15m", "failed:1h"]],
  ["error:x", []],
])("offers for %s", (text, options) => expect(new Set(offered(text))).toEqual(new Set(options)));

it("says what to write where there is nothing to choose from", () => {
  expect(suggest("error:", 6, KNOWN).hint).toBe("error: text in the error");
});

it("changes the word at the caret only", () => {
  const text = "type:se status:failed";
  const found = suggest(text, 7, KNOWN);
  const [first] = found.options;
  if (!first) throw new Error("nothing offered");
  expect(accept(text, found, first)).toEqual({ text: "type:mail.send status:failed", caret: 15 });
});

it("waits for a value after a qualifier", () => {
  const found = suggest("ty", 2, KNOWN);
  const [first] = found.options;
  if (!first) throw new Error("nothing offered");
  expect(accept("ty", found, first)).toEqual({ text: "type:", caret: 5 });
});

it("notes what is unknown, and how far a search looks", () => {
  const counts = { total: 137, totalCapped: true };
  expect(notesOn({ ...NOTHING, types: ["Mail.Sen"] }, KNOWN, counts)).toEqual([
    "No task type is called “Mail.Sen”. Did you mean “mail.send”?",
  ]);
  expect(notesOn({ ...NOTHING, types: ["resend"], prefix: "x", worker: "w" }, KNOWN, counts)).toHaveLength(2);
  const limited = [
    "Counted among up to 20,000 of the newest tasks that meet the other conditions. The next pages look at older ones.",
  ];
  expect(notesOn({ ...NOTHING, error: "x" }, KNOWN, counts)).toEqual(limited);
  expect(notesOn({ ...NOTHING, tags: [["a", "b"]] }, null, counts)).toEqual(limited);
  expect(notesOn({ ...NOTHING, ended: "1h" }, null, counts)).toEqual(limited);
  expect(notesOn({ ...NOTHING, error: "x" }, KNOWN, { total: 137, totalCapped: false })).toEqual([]);
  expect(notesOn({ ...NOTHING, error: "x" }, KNOWN, { total: 10_000, totalCapped: true })).toEqual([]);
  expect(notesOn(NOTHING, KNOWN, counts)).toEqual([]);
});
