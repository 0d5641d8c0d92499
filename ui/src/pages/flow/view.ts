/** Which part of a drawing is seen, and how large. */
import type { Point } from "@/pages/flow/layout";

export interface View {
  /** What of the drawing is at the top left of the box. */
  x: number;
  y: number;
  /** Pixels for each unit of the drawing. */
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export type Area = Point & Size;

export const LEAST_SCALE = 0.08;
export const MOST_SCALE = 2;
const READABLE = 0.7;
const LEAST_HEIGHT = 160;
const MOST_HEIGHT = 460;
const MARGIN = 24;
/** So much of the drawing stays in the box, however it is moved. */
const STAYS = 80;

/** All of it, in the middle; no larger than it is. */
export function whole(drawing: Size, box: Size): View {
  const fits = Math.min((box.width - 2 * MARGIN) / drawing.width, (box.height - 2 * MARGIN) / drawing.height, 1);
  const scale = Math.max(LEAST_SCALE, Number.isFinite(fits) ? fits : 1);
  return centred({ x: 0, y: 0, ...drawing }, box, scale);
}

export function centred(area: Area, box: Size, scale: number): View {
  return {
    scale,
    x: area.x + area.width / 2 - box.width / scale / 2,
    y: area.y + area.height / 2 - box.height / scale / 2,
  };
}

/** A box of this width needs no more. */
export function heightFor(drawing: Size, width: number): number {
  const scale = Math.max(READABLE, whole(drawing, { width, height: Number.POSITIVE_INFINITY }).scale);
  return Math.round(Math.min(MOST_HEIGHT, Math.max(LEAST_HEIGHT, drawing.height * scale + 3 * MARGIN)));
}

/** At first: all of it where its text can be read; else what matters most, in a size that can be. */
export function opening(drawing: Size, box: Size, start: Area | null): View {
  const all = whole(drawing, box);
  if (all.scale >= READABLE || !start) return all;
  const { scale, x, y } = centred(start, box, READABLE);
  const middle = centred({ x: 0, y: 0, ...drawing }, box, scale);
  // Nothing is gained by a look beyond the edges of the drawing.
  const along = (at: number, seen: number, length: number, centre: number) => {
    const margin = MARGIN / scale;
    return seen > length + 2 * margin ? centre : Math.min(Math.max(at, -margin), length + margin - seen);
  };
  return {
    scale,
    x: along(x, box.width / scale, drawing.width, middle.x),
    y: along(y, box.height / scale, drawing.height, middle.y),
  };
}

/** By pixels. */
export function moved(view: View, dx: number, dy: number): View {
  return { ...view, x: view.x + dx / view.scale, y: view.y + dy / view.scale };
}

/** What is at this place of the box stays there. */
export function zoomed(view: View, factor: number, at: Point): View {
  const scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, view.scale * factor));
  return { scale, x: view.x + at.x / view.scale - at.x / scale, y: view.y + at.y / view.scale - at.y / scale };
}

/** Moved as little as it takes to have the area in sight. */
export function showing(view: View, area: Area, box: Size): View {
  const margin = MARGIN / view.scale;
  const along = (from: number, length: number, start: number, seen: number): number => {
    if (start < from + margin) return start - margin;
    if (start + length > from + seen - margin) return start + length - seen + margin;
    return from;
  };
  // Its beginning wins where there is no room for all of it.
  const x = along(view.x, Math.min(area.width, box.width / view.scale - 2 * margin), area.x, box.width / view.scale);
  const y = along(view.y, Math.min(area.height, box.height / view.scale - 2 * margin), area.y, box.height / view.scale);
  return { ...view, x, y };
}

/** Nobody loses the drawing out of sight. */
export function kept(view: View, drawing: Size, box: Size): View {
  const stays = STAYS / view.scale;
  const between = (value: number, least: number, most: number) => Math.min(most, Math.max(least, value));
  return {
    scale: view.scale,
    x: between(view.x, stays - box.width / view.scale, drawing.width - stays),
    y: between(view.y, stays - box.height / view.scale, drawing.height - stays),
  };
}

export function seenArea(view: View, box: Size): Area {
  return { x: view.x, y: view.y, width: box.width / view.scale, height: box.height / view.scale };
}

export function overlaps(one: Area, other: Area): boolean {
  return (
    one.x < other.x + other.width &&
    other.x < one.x + one.width &&
    one.y < other.y + other.height &&
    other.y < one.y + one.height
  );
}
