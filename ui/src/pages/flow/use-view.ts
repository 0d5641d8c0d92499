import { type PointerEvent, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import {
  type Area,
  heightFor,
  kept,
  moved,
  opening,
  type Size,
  showing,
  type View,
  whole,
  zoomed,
} from "@/pages/flow/view";

const STEP = 1.3;
const DRAGGED_PX = 4;
const USUAL_WIDTH = 960;

/** Pan and zoom: by pointer, by wheel, by the buttons, and to what has the focus. */
export function useView(drawing: Size, start: Area | null) {
  const svg = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(USUAL_WIDTH);
  const height = heightFor(drawing, width);
  const box = useMemo(() => ({ width, height }), [width, height]);
  /** Null until somebody has moved it: it then follows the size of the window and of the flow. */
  const [chosen, setChosen] = useState<View | null>(null);
  const view = kept(chosen ?? opening(drawing, box, start), drawing, box);
  const latest = useRef(view);
  latest.current = view;

  const change = useCallback((next: (view: View) => View) => setChosen(next(latest.current)), []);
  const zoom = useCallback(
    (factor: number) => change((had) => zoomed(had, factor, { x: box.width / 2, y: box.height / 2 })),
    [box, change],
  );

  useLayoutEffect(() => {
    const element = svg.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth || USUAL_WIDTH);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  // React's own listener may not keep the page from scrolling.
  useEffect(() => {
    const element = svg.current;
    const turn = (event: WheelEvent) => {
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
      if (event.ctrlKey || event.metaKey) {
        const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
        const at = { x: event.clientX - left, y: event.clientY - top };
        change((had) => zoomed(had, Math.exp(-event.deltaY / 200), at));
      } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
        change((had) => moved(had, sideways, 0));
      } else return; // the page's
      event.preventDefault();
    };
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  }, [change]);

  return {
    svg,
    box,
    view,
    zoomIn: () => zoom(STEP),
    zoomOut: () => zoom(1 / STEP),
    fit: () => setChosen(whole(drawing, box)),
    show: (area: Area) => change((had) => showing(had, area, box)),
    pan: usePan(change),
  };
}

/** A drag moves the drawing, and is no click on the node that it began at. */
function usePan(change: (next: (view: View) => View) => void) {
  const from = useRef<{ x: number; y: number; moving: boolean } | null>(null);
  const dragged = useRef(false);
  return {
    onPointerDown: (event: PointerEvent) => {
      dragged.current = false;
      if (event.button === 0) from.current = { x: event.clientX, y: event.clientY, moving: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const had = from.current;
      if (!had) return;
      const [dx, dy] = [had.x - event.clientX, had.y - event.clientY];
      if (!had.moving && Math.hypot(dx, dy) < DRAGGED_PX) return;
      if (!had.moving) event.currentTarget.setPointerCapture(event.pointerId);
      dragged.current = true;
      from.current = { x: event.clientX, y: event.clientY, moving: true };
      change((view) => moved(view, dx, dy));
    },
    onPointerUp: () => {
      from.current = null;
    },
    onPointerCancel: () => {
      from.current = null;
    },
    onClickCapture: (event: { preventDefault: () => void; stopPropagation: () => void }) => {
      if (!dragged.current) return;
      dragged.current = false;
      event.preventDefault();
      event.stopPropagation();
    },
    onDragStart: (event: { preventDefault: () => void }) => event.preventDefault(),
  };
}
