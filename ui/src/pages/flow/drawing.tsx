import { Maximize, ZoomIn, ZoomOut } from "lucide-react";
import { type KeyboardEvent, useCallback, useId, useMemo, useState } from "react";
import type { FlowNode } from "@/api/model";
import { IconButton } from "@/components/button";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { DrawingNode } from "@/pages/flow/drawing-node";
import { curve, type Layout, layoutOf, NODE_HEIGHT, NODE_WIDTH, type Point } from "@/pages/flow/layout";
import { isArrow, neighbour } from "@/pages/flow/neighbours";
import { STATES, stateOf } from "@/pages/flow/state";
import { useView } from "@/pages/flow/use-view";
import { type Area, overlaps, seenArea } from "@/pages/flow/view";
import { count, plural } from "@/text/number";

const TEXT_FROM_SCALE = 0.4;

/** The flow from left to right. Only what is in sight is in the page, so that thousands of nodes move smoothly. */
export function Drawing({ flowId, nodes }: { flowId: string; nodes: readonly FlowNode[] }) {
  const layout = useLayout(nodes);
  const urgent = useMemo(() => mostUrgent(nodes), [nodes]);
  const [chosen, setChosen] = useState<string | null>(null);
  const current = chosen !== null && layout.places.has(chosen) ? chosen : urgent;
  const [active, setActive] = useState<string | null>(null);
  const { svg, box, view, zoomIn, zoomOut, fit, show, pan } = useView(layout, areaOf(layout, urgent));
  const help = useId();
  const seen = seenArea(view, box);
  const leave = useCallback(() => setActive(null), []);
  const focus = useCallback((key: string) => {
    setChosen(key);
    setActive(key);
  }, []);

  function press(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zooms: Record<string, () => void> = { "+": zoomIn, "=": zoomIn, "-": zoomOut, "0": fit };
    if (isArrow(event.key)) {
      const next = current === null ? null : neighbour(current, event.key, nodes, layout);
      if (next !== null) goTo(next);
    } else if (zooms[event.key]) zooms[event.key]?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function goTo(key: string) {
    setChosen(key);
    const area = areaOf(layout, key);
    if (area) show(area);
    // Once it is drawn: it may have been out of sight.
    requestAnimationFrame(() => svg.current?.querySelector<SVGAElement>(`[data-node="${CSS.escape(key)}"]`)?.focus());
  }

  return (
    <Card
      title="Drawing"
      flush
      actions={
        <>
          <IconButton label="Zoom in" size="small" onClick={zoomIn}>
            <ZoomIn className="size-4" aria-hidden="true" />
          </IconButton>
          <IconButton label="Zoom out" size="small" onClick={zoomOut}>
            <ZoomOut className="size-4" aria-hidden="true" />
          </IconButton>
          <IconButton label="All of it" size="small" onClick={fit}>
            <Maximize className="size-4" aria-hidden="true" />
          </IconButton>
        </>
      }
    >
      {/* biome-ignore lint/a11y/useSemanticElements: HTML has no group that can be drawn in */}
      <svg
        ref={svg}
        role="group"
        aria-label={`${plural(nodes.length, "node")}, from left to right`}
        aria-describedby={help}
        height={box.height}
        viewBox={`${seen.x} ${seen.y} ${seen.width} ${seen.height}`}
        onKeyDown={press}
        {...pan}
        className="block w-full cursor-grab touch-pan-y select-none active:cursor-grabbing"
      >
        <Lines layout={layout} seen={seen} active={active} />
        {nodes.map((node) => {
          const area = areaOf(layout, node.key);
          if (!area || (node.key !== current && !overlaps(area, seen))) return null;
          return (
            <DrawingNode
              key={node.key}
              flowId={flowId}
              node={node}
              x={area.x}
              y={area.y}
              current={node.key === current}
              far={view.scale < TEXT_FROM_SCALE}
              onFocus={focus}
              onEnter={setActive}
              onLeave={leave}
            />
          );
        })}
      </svg>
      <p id={help} className="border-t px-4 py-1.5 text-dim text-xs">
        Drag to move, Ctrl and the wheel to zoom. By keyboard: arrows go from node to node, Enter opens, + and − zoom, 0
        shows all of it.
        {layout.linesLeftOut > 0 && ` ${count(layout.linesLeftOut)} lines are not drawn; the table has them all.`}
      </p>
    </Card>
  );
}

function Lines({ layout, seen, active }: { layout: Layout; seen: Area; active: string | null }) {
  const drawn = useMemo(
    () => layout.lines.map((line) => ({ ...line, d: curve(line.points), area: around(line.points) })),
    [layout],
  );
  const inSight = drawn.filter(({ area }) => overlaps(area, seen));
  const isActive = ({ from, to }: { from: string; to: string }) =>
    active !== null && (from === active || to === active);
  return (
    <g className="fill-none">
      {/* Those of the active node last, so on top. */}
      {inSight
        .toSorted((one, other) => Number(isActive(one)) - Number(isActive(other)))
        .map((line) => (
          <path
            key={`${line.from} ${line.to}`}
            d={line.d}
            className={classes(isActive(line) ? "stroke-2 stroke-accent" : "stroke-[1.5] stroke-line-strong")}
          />
        ))}
    </g>
  );
}

/** Anew when nodes come or go, not when their counts move: nothing jumps under the pointer. */
function useLayout(nodes: readonly FlowNode[]): Layout {
  const shape = nodes.map(({ key, layer, parents }) => `${key} ${layer} ${parents.join(" ")}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape says when the nodes are others
  return useMemo(() => layoutOf(nodes), [shape]);
}

/** The first that failed; else the first that is under way. */
function mostUrgent(nodes: readonly FlowNode[]): string | null {
  const found = STATES.map((state) => nodes.find(({ counts }) => stateOf(counts) === state)).find(Boolean);
  const over = found && /^(cancelled|completed)$/.test(stateOf(found.counts));
  return (over ? nodes[0] : found)?.key ?? null;
}

function areaOf(layout: Layout, key: string | null): Area | null {
  const place = key === null ? undefined : layout.places.get(key);
  return place ? { ...place, width: NODE_WIDTH, height: NODE_HEIGHT } : null;
}

function around(points: readonly Point[]): Area {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const [x, y] = [Math.min(...xs), Math.min(...ys)];
  return { x, y: y - 1, width: Math.max(...xs) - x, height: Math.max(...ys) - y + 2 };
}
