import { expect, test } from "vitest";
import { curve, GAP_X, type LayoutNode, layoutOf, MOST_LINES, NODE_HEIGHT, NODE_WIDTH } from "@/pages/flow/layout";

/** "merge 2: clean_a clean_b": key, layer and parents. */
function nodes(...lines: string[]): LayoutNode[] {
  return lines.map((line) => {
    const [, key = "", layer, parents = ""] = /^(\S+) (-?\d+):? ?(.*)$/.exec(line) ?? [];
    return { key, layer: Number(layer), parents: parents.split(" ").filter(Boolean) };
  });
}

const middles = (given: LayoutNode[]) => {
  const { places } = layoutOf(given);
  return (key: string) => (places.get(key)?.y ?? Number.NaN) + NODE_HEIGHT / 2;
};

test("layers go from left to right, whatever their numbers", () => {
  const { places, width, height } = layoutOf(nodes("a 0", "b 3: a", "c 7: b"));
  expect(["a", "b", "c"].map((key) => places.get(key))).toEqual([
    { x: 0, y: 0 },
    { x: NODE_WIDTH + GAP_X, y: 0 },
    { x: 2 * (NODE_WIDTH + GAP_X), y: 0 },
  ]);
  expect([width, height]).toEqual([3 * NODE_WIDTH + 2 * GAP_X, NODE_HEIGHT]);
});

test("lines that need not cross do not, and a fan has its parent and its child in the middle", () => {
  const y = middles(nodes("a 0", "b 0", "of_b 1: b", "of_a 1: a", "end_a 2: of_a", "end_b 2: of_b"));
  expect(y("of_a") < y("of_b")).toBe(y("a") < y("b"));
  expect(y("end_a") < y("end_b")).toBe(y("a") < y("b"));
  const fan = middles(nodes("load 0", "x 1: load", "y 1: load", "z 1: load", "merge 2: x y z"));
  const all = ["x", "y", "z"].map(fan);
  expect(fan("load")).toBeCloseTo(fan("merge"));
  expect(fan("load")).toBeCloseTo(all.reduce((sum, each) => sum + each) / 3);
});

test("nodes of a layer never overlap, and a long line has a place of its own between them", () => {
  const given = nodes("a 0", "b 1: a", "c 1: a", "d 2: b", "e 2: c", "f 3: d e a");
  const { places, lines } = layoutOf(given);
  for (const { key, layer } of given) {
    for (const other of given) {
      if (other.layer !== layer || other.key === key) continue;
      expect(Math.abs((places.get(key)?.y ?? 0) - (places.get(other.key)?.y ?? 0))).toBeGreaterThan(NODE_HEIGHT);
    }
  }
  const long = lines.find(({ from, to }) => from === "a" && to === "f");
  expect(long?.points).toHaveLength(6);
  for (const { x, y } of long?.points.slice(1, -1) ?? []) {
    for (const place of places.values()) {
      const inside = x >= place.x && x <= place.x + NODE_WIDTH && y > place.y && y < place.y + NODE_HEIGHT;
      expect(inside).toBe(false);
    }
  }
});

test("rows edited by hand are drawn: unknown parents, itself, parents in the same layer or to the right", () => {
  const { places, lines } = layoutOf(nodes("a 1: gone a b", "b 1", "c -4: b"));
  expect([...places.keys()]).toEqual(["a", "b", "c"]);
  expect(lines.map(({ from, to }) => `${from} ${to}`)).toEqual(["b a", "b c"]);
  expect(layoutOf([])).toMatchObject({ width: 0, height: 0, lines: [] });
});

test("thousands are laid out at once: a chain, one that needs all of it, and more lines than anybody can see", () => {
  const chain = Array.from({ length: 2_000 }, (_, at) => `t${at} ${at}:${at ? ` t${at - 1}` : ""}`);
  const all = chain.map((line) => line.split(" ")[0]).join(" ");
  const long = layoutOf(nodes(...chain, `end 2000: ${all}`));
  const left = Array.from({ length: 150 }, (_, at) => `l${at} 0`);
  const right = Array.from({ length: 100 }, (_, at) => `r${at} 1: ${left.map((each) => each.split(" ")[0]).join(" ")}`);
  const dense = layoutOf(nodes(...left, ...right));
  expect(long.places.size).toBe(2_001);
  expect(dense.lines).toHaveLength(MOST_LINES);
  expect(dense.linesLeftOut).toBe(3_000);
});

test("a line is level at its ends", () => {
  expect(
    curve([
      { x: 0, y: 0 },
      { x: 10, y: 20 },
    ]),
  ).toBe("M0 0C5 0 5 20 10 20");
  expect(
    curve([
      { x: 0, y: 5 },
      { x: 10, y: 5 },
    ]),
  ).toBe("M0 5H10");
});
