/** Where the nodes of a flow are drawn: layers from left to right, as the server has numbered them. Within a layer nodes
 * are ordered and placed by the middle of their neighbours, so that few lines cross and most are nearly straight. */

export interface LayoutNode {
  key: string;
  layer: number;
  /** Keys of nodes. */
  parents: readonly string[];
}

export interface Point {
  x: number;
  y: number;
}

export interface Line {
  from: string;
  to: string;
  /** From the right side of one node to the left side of the other; in between where it passes through layers. */
  points: readonly Point[];
}

export interface Layout {
  /** The top left corner of each node, by its key. */
  places: ReadonlyMap<string, Point>;
  lines: readonly Line[];
  /** There are more than are worth drawing. */
  linesLeftOut: number;
  width: number;
  height: number;
}

export const NODE_WIDTH = 216;
export const NODE_HEIGHT = 58;
export const GAP_X = 56;
export const GAP_Y = 18;
/** More lines than these are a grey area to everybody. */
export const MOST_LINES = 12_000;
/** Places that lines keep free in the layers between their ends. A line beyond these is drawn straight. */
const MOST_BENDS = 4_000;
const SWEEPS = 6;

/** A node, or where a long line passes through a layer. */
interface Vertex {
  key: string | null;
  column: number;
  height: number;
  left: Vertex[];
  right: Vertex[];
  /** Its place in the order of its layer, then its middle. */
  at: number;
}

interface Path {
  from: Vertex;
  to: Vertex;
  bends: Vertex[];
}

export function layoutOf(nodes: readonly LayoutNode[]): Layout {
  const columns = columnsOf(nodes);
  const vertices = new Map<string, Vertex>();
  for (const { key, layer } of nodes) {
    vertices.set(key, vertexAt(columns.get(layer) ?? 0, key));
  }
  const { paths, leftOut } = pathsOf(nodes, vertices);
  const layers: Vertex[][] = Array.from(columns, () => []);
  for (const vertex of [...vertices.values(), ...paths.flatMap(({ bends }) => bends)]) {
    layers[vertex.column]?.push(vertex);
  }
  putInOrder(layers);
  place(layers);
  return drawn(vertices, paths, leftOut, layers.length);
}

/** Numbers of layers may have gaps; columns have none. */
function columnsOf(nodes: readonly LayoutNode[]): Map<number, number> {
  const numbers = [...new Set(nodes.map(({ layer }) => layer))].sort((one, other) => one - other);
  return new Map(numbers.map((layer, column) => [layer, column]));
}

function vertexAt(column: number, key: string | null): Vertex {
  return { key, column, height: key === null ? 0 : NODE_HEIGHT, left: [], right: [], at: 0 };
}

function pathsOf(
  nodes: readonly LayoutNode[],
  vertices: ReadonlyMap<string, Vertex>,
): { paths: Path[]; leftOut: number } {
  const paths: Path[] = [];
  let leftOut = 0;
  let bendsLeft = MOST_BENDS;
  for (const { key, parents } of nodes) {
    const to = vertices.get(key);
    for (const parent of new Set(parents)) {
      const from = vertices.get(parent);
      if (!from || !to || from === to) continue; // rows edited by hand
      if (paths.length >= MOST_LINES) {
        leftOut += 1;
        continue;
      }
      const between = Math.max(0, to.column - from.column - 1);
      const bends =
        between > bendsLeft ? [] : Array.from({ length: between }, (_, at) => vertexAt(from.column + 1 + at, null));
      bendsLeft -= bends.length;
      paths.push({ from, to, bends });
      if (to.column > from.column) connect([from, ...bends, to]);
    }
  }
  return { paths, leftOut };
}

function connect(chain: readonly Vertex[]): void {
  chain.slice(1).forEach((right, at) => {
    const left = chain[at] as Vertex;
    left.right.push(right);
    right.left.push(left);
  });
}

/** By the mean place of the neighbours: to the left, then to the right, again and again. */
function putInOrder(layers: Vertex[][]): void {
  for (const layer of layers) number(layer);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of layers) sortBy(layer, "left");
    for (const layer of layers.toReversed()) sortBy(layer, "right");
  }
  for (const layer of layers) sortBy(layer, "left");
}

function sortBy(layer: Vertex[], side: "left" | "right"): void {
  if (layer.length < 2) return;
  const wanted = new Map(layer.map((vertex) => [vertex, meanOf(vertex[side]) ?? vertex.at]));
  layer.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
  number(layer);
}

/** From the middle of the layer, so that places in layers of different sizes can be compared. */
function number(layer: readonly Vertex[]): void {
  layer.forEach((vertex, index) => {
    vertex.at = index - (layer.length - 1) / 2;
  });
}

function meanOf(vertices: readonly Vertex[]): number | null {
  if (vertices.length === 0) return null;
  return vertices.reduce((sum, { at }) => sum + at, 0) / vertices.length;
}

/** The order stays; each goes as near to the middle of its neighbours as the others let it. */
function place(layers: readonly Vertex[][]): void {
  for (const layer of layers) spread(layer, () => 0);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    for (const layer of layers) spread(layer, ({ left, at }) => meanOf(left) ?? at);
    for (const layer of layers.toReversed()) spread(layer, ({ right, at }) => meanOf(right) ?? at);
  }
  for (const layer of layers) spread(layer, ({ left, right, at }) => meanOf([...left, ...right]) ?? at);
}

/** As near to what they want as their distances allow, by least squares: those that are in each other's way make a block,
 * which lies at the mean of what its members want. */
function spread(layer: readonly Vertex[], wanted: (vertex: Vertex) => number): void {
  const [first, second] = layer;
  if (first && !second) {
    first.at = wanted(first); // long chains have thousands of such layers
    return;
  }
  const blocks: { sum: number; size: number }[] = [];
  const offsets: number[] = [];
  let offset = 0;
  layer.forEach((vertex, index) => {
    const above = layer[index - 1];
    if (above) offset += (above.height + vertex.height) / 2 + GAP_Y;
    offsets.push(offset);
    let block = { sum: wanted(vertex) - offset, size: 1 };
    for (let last = blocks.at(-1); last && last.sum / last.size >= block.sum / block.size; last = blocks.at(-1)) {
      block = { sum: block.sum + last.sum, size: block.size + last.size };
      blocks.pop();
    }
    blocks.push(block);
  });
  const starts = blocks.flatMap(({ sum, size }) => new Array<number>(size).fill(sum / size));
  layer.forEach((vertex, index) => {
    vertex.at = (starts[index] ?? 0) + (offsets[index] ?? 0);
  });
}

function drawn(
  vertices: ReadonlyMap<string, Vertex>,
  paths: readonly Path[],
  linesLeftOut: number,
  columns: number,
): Layout {
  const all = [...vertices.values(), ...paths.flatMap(({ bends }) => bends)];
  const [top, bottom] = all.reduce(
    ([least, most], { at, height }) => [Math.min(least, at - height / 2), Math.max(most, at + height / 2)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const start = ({ column, at }: Vertex): Point => ({ x: column * (NODE_WIDTH + GAP_X), y: at - top });
  const end = (vertex: Vertex): Point => ({ ...start(vertex), x: start(vertex).x + NODE_WIDTH });
  return {
    places: new Map(
      [...vertices].map(([key, vertex]) => {
        const { x, y } = start(vertex);
        return [key, { x, y: y - vertex.height / 2 }];
      }),
    ),
    lines: paths.map(({ from, to, bends }) => ({
      from: from.key ?? "",
      to: to.key ?? "",
      points: [end(from), ...bends.flatMap((bend) => [start(bend), end(bend)]), start(to)],
    })),
    linesLeftOut,
    width: Math.max(0, columns * (NODE_WIDTH + GAP_X) - GAP_X),
    height: Math.max(0, bottom - top),
  };
}

/** As SVG draws it: level where it meets a node. */
export function curve(points: readonly Point[]): string {
  return points
    .map(({ x, y }, index) => {
      const before = points[index - 1];
      if (!before) return `M${at(x)} ${at(y)}`;
      if (before.y === y) return `H${at(x)}`;
      const middle = at((before.x + x) / 2);
      return `C${middle} ${at(before.y)} ${middle} ${at(y)} ${at(x)} ${at(y)}`;
    })
    .join("");
}

const at = (value: number): number => Math.round(value * 10) / 10;
