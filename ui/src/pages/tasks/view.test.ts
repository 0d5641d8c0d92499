import { beforeEach, expect, it } from "vitest";
import {
  COLUMN_IDS,
  readColumns,
  rememberColumns,
  rememberedColumns,
  USUAL,
  writeColumns,
} from "@/pages/tasks/column-choice";
import { exportQuery } from "@/pages/tasks/export-menu";
import { orderObstacle, readOrder } from "@/pages/tasks/order";
import { forgetSearch, MOST_SAVED, savedSearches, saveSearch } from "@/pages/tasks/saved-searches";
import { NOTHING } from "@/pages/tasks/search/filter";

beforeEach(() => localStorage.clear());

it("keeps columns in the address, and nothing for the usual ones", () => {
  expect(readColumns(undefined)).toBe(USUAL);
  expect(writeColumns([...USUAL].reverse())).toBeUndefined();
  expect(readColumns("tags,error,nonsense")).toEqual(["error", "tags"]);
  for (const columns of [[], ["tags"], COLUMN_IDS] as const) {
    const text = writeColumns(columns);
    expect(text).toBeTruthy();
    expect(readColumns(text)).toEqual(columns);
  }
});

it("remembers columns until the usual ones are chosen", () => {
  rememberColumns("tags");
  expect(rememberedColumns()).toBe("tags");
  rememberColumns(undefined);
  expect(rememberedColumns()).toBeUndefined();
});

it("sorts by the end what failed or was cancelled, and says why nothing else", () => {
  expect(readOrder("duration")).toBe("duration");
  expect(readOrder("toString")).toBe("created");
  expect(orderObstacle("ended", { ...NOTHING, statuses: ["failed", "cancelled"] })).toBeNull();
  expect(orderObstacle("ended", NOTHING)).toContain("only failed and cancelled");
  expect(orderObstacle("ended", { ...NOTHING, statuses: ["failed", "completed"] })).toContain("only failed");
  expect(orderObstacle("duration", NOTHING)).toBeNull();
});

it("keeps searches by name, the latest first, and forgets them", () => {
  saveSearch({ name: "a", search: { q: "status:failed" } });
  saveSearch({ name: "b", search: { q: "4711", cols: "error", sort: "duration" } });
  saveSearch({ name: "a", search: { q: "status:pending" } });
  expect(savedSearches().map(({ name, search }) => [name, search.q])).toEqual([
    ["a", "status:pending"],
    ["b", "4711"],
  ]);
  forgetSearch("a");
  expect(savedSearches()).toHaveLength(1);
  for (let at = 0; at < 60; at++) saveSearch({ name: String(at), search: {} });
  expect(savedSearches()).toHaveLength(MOST_SAVED);
});

it.each(["{", "7", '[{"name": 1}]', '[{"name": "x", "search": {"q": {}}}]', "[null]"])(
  "reads nothing from %s",
  (kept) => {
    localStorage.setItem("tasklib.searches", kept);
    expect(savedSearches()).toEqual([]);
  },
);

it("asks for the file of what the list shows", () => {
  const query = exportQuery({ type: ["a", "b c"], word: ["x&y"], finished: true }, "csv");
  expect(query).toBe("format=csv&type=a&type=b+c&word=x%26y&finished=true");
});
