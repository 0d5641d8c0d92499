/** Where arrow keys lead from a node of the drawing. */
import type { Layout, LayoutNode } from "@/pages/flow/layout";

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export function isArrow(key: string): key is Arrow {
  return /^Arrow(Left|Right|Up|Down)$/.test(key);
}

/** To the sides along a line, to the nearest by height; up and down within the layer. Null: there is nothing. */
export function neighbour(from: string, arrow: Arrow, nodes: readonly LayoutNode[], layout: Layout): string | null {
  const height = (key: string) => layout.places.get(key)?.y ?? 0;
  const here = nodes.find(({ key }) => key === from);
  if (!here) return nodes[0]?.key ?? null;
  const nearest = (keys: readonly string[]) =>
    keys
      .filter((key) => layout.places.has(key) && key !== from)
      .toSorted((one, other) => Math.abs(height(one) - height(from)) - Math.abs(height(other) - height(from)))[0] ??
    null;
  if (arrow === "ArrowLeft") return nearest(here.parents);
  if (arrow === "ArrowRight") {
    return nearest(nodes.filter(({ parents }) => parents.includes(from)).map(({ key }) => key));
  }
  const beyond = (key: string) => (arrow === "ArrowUp" ? height(key) < height(from) : height(key) > height(from));
  return nearest(nodes.filter(({ layer, key }) => layer === here.layer && beyond(key)).map(({ key }) => key));
}
