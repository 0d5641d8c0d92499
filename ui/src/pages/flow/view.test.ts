import { expect, test } from "vitest";
import {
  heightFor,
  kept,
  LEAST_SCALE,
  MOST_SCALE,
  moved,
  opening,
  overlaps,
  seenArea,
  showing,
  whole,
  zoomed,
} from "@/pages/flow/view";

const box = { width: 800, height: 400 };
const wide = { width: 8_000, height: 100 };

test("all of a drawing is seen in the middle, no larger than it is and no smaller than can be seen", () => {
  expect(whole({ width: 200, height: 100 }, box)).toEqual({ scale: 1, x: -300, y: -150 });
  const { scale, x } = whole({ width: 4_000, height: 100 }, box);
  expect(4_000 * scale).toBeLessThan(box.width);
  expect(x).toBeLessThan(0);
  expect(whole({ width: 1e6, height: 1 }, box).scale).toBe(LEAST_SCALE);
  expect(whole({ width: 0, height: 0 }, box).scale).toBe(1);
});

test("a zoom keeps what is under the pointer there, and has its bounds", () => {
  const view = { x: 10, y: 20, scale: 1 };
  const near = zoomed(view, 2, { x: 100, y: 50 });
  expect(near).toEqual({ scale: 2, x: 60, y: 45 });
  expect(zoomed(near, 0.5, { x: 100, y: 50 })).toEqual(view);
  expect(zoomed(view, 1_000, { x: 0, y: 0 }).scale).toBe(MOST_SCALE);
  expect(zoomed(view, 0.0001, { x: 0, y: 0 }).scale).toBe(LEAST_SCALE);
});

test("it moves by pixels, and never out of sight", () => {
  expect(moved({ x: 0, y: 0, scale: 0.5 }, 10, -5)).toEqual({ x: 20, y: -10, scale: 0.5 });
  for (const far of [1e6, -1e6]) {
    const view = kept({ x: far, y: far, scale: 1 }, wide, box);
    expect(overlaps(seenArea(view, box), { x: 0, y: 0, ...wide })).toBe(true);
  }
});

test("a node is brought into sight, and nothing moves for one that is", () => {
  const view = { x: 0, y: 0, scale: 1 };
  const seen = { x: 300, y: 100, width: 200, height: 60 };
  expect(showing(view, seen, box)).toEqual(view);
  const right = showing(view, { ...seen, x: 3_000 }, box);
  expect(right).toEqual({ x: 2_424, y: 0, scale: 1 });
  expect(showing(right, { ...seen, x: 100 }, box)).toEqual({ x: 76, y: 0, scale: 1 });
});

test("a box is as high as the drawing needs in its width, within bounds", () => {
  expect(heightFor({ width: 700, height: 200 }, 800)).toBe(272);
  expect(heightFor({ width: 1_000, height: 300 }, 800)).toBeLessThan(300);
  expect(heightFor({ width: 100, height: 10 }, 800)).toBe(160);
  expect(heightFor({ width: 100, height: 9_000 }, 800)).toBe(460);
});

test("what is too long to be read as a whole opens at what matters, not beyond its edges", () => {
  const node = (x: number) => ({ x, y: 0, width: 200, height: 60 });
  expect(opening({ width: 700, height: 100 }, box, node(0))).toEqual(whole({ width: 700, height: 100 }, box));
  for (const x of [0, 4_000, 7_800]) {
    const view = opening(wide, box, node(x));
    const seen = seenArea(view, box);
    expect(view.scale).toBeGreaterThan(0.5);
    expect(seen.x).toBeLessThan(x);
    expect(seen.x + seen.width).toBeGreaterThan(x + 200);
    expect(seen.x).toBeGreaterThan(-50);
    expect(seen.x + seen.width).toBeLessThan(8_050);
    expect(seen.y + seen.height / 2).toBe(50);
  }
});
