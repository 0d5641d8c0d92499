import { expect, test } from "vitest";
import { layoutOf } from "@/pages/flow/layout";
import { type Arrow, isArrow, neighbour } from "@/pages/flow/neighbours";

const NODES = [
  { key: "load", layer: 0, parents: [] },
  { key: "x", layer: 1, parents: ["load"] },
  { key: "y", layer: 1, parents: ["load"] },
  { key: "merge", layer: 2, parents: ["x", "y", "gone"] },
];

test.each([
  ["load", "ArrowLeft", null],
  ["x", "ArrowDown", "y"],
  ["x", "ArrowUp", null],
  ["y", "ArrowUp", "x"],
  ["y", "ArrowRight", "merge"],
  ["x", "ArrowLeft", "load"],
  ["gone", "ArrowRight", "load"],
] as [string, Arrow, string | null][])("from %s by %s to %s", (from, arrow, to) => {
  expect(neighbour(from, arrow, NODES, layoutOf(NODES))).toBe(to);
});

test("arrows are arrows", () => {
  expect(["ArrowUp", "Enter", "ArrowUpwards"].map(isArrow)).toEqual([true, false, false]);
});
