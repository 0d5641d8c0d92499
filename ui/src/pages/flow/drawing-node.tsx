import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { FlowNode } from "@/api/model";
import { classes } from "@/components/classes";
import { LOOKS } from "@/components/status-badge";
import { NODE_HEIGHT, NODE_WIDTH } from "@/pages/flow/layout";
import { tasksOf } from "@/pages/flow/node-link";
import { BAR_COLOURS, barOf, inShort, inWords, type State, stateOf } from "@/pages/flow/state";
import { escapeText } from "@/text/escape";

export interface DrawingNodeProps {
  flowId: string;
  node: FlowNode;
  x: number;
  y: number;
  /** The one that Tab leads to; arrow keys lead from there to the others. */
  current: boolean;
  /** Too small for text. */
  far: boolean;
  onFocus: (key: string) => void;
  onEnter: (key: string) => void;
  onLeave: () => void;
}

const COLOURS: Record<State, { ground: string; icon: string }> = {
  failed: { ground: "fill-failed-soft stroke-failed", icon: "text-failed" },
  retrying: { ground: "fill-failed-soft stroke-failed", icon: "text-failed" },
  processing: { ground: "fill-processing-soft stroke-processing", icon: "text-processing" },
  pending: { ground: "fill-surface stroke-pending", icon: "text-pending" },
  waiting: { ground: "fill-surface stroke-line-strong", icon: "text-dim" },
  cancelled: { ground: "fill-cancelled-soft stroke-line-strong", icon: "text-cancelled" },
  completed: { ground: "fill-surface stroke-completed", icon: "text-completed" },
};

const BAR = { x: 12, y: NODE_HEIGHT - 11, width: NODE_WIDTH - 24, height: 4 };
const MOST_CHARACTERS = 21;

/** Tasks of one type that wait for the same: what they do, by icon, words and colour, and the way to them. */
export const DrawingNode = memo(function DrawingNode(props: DrawingNodeProps) {
  const { node, x, y, current, far, flowId } = props;
  const state = stateOf(node.counts);
  const name = escapeText(node.type);
  const shown = name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS - 1)}…` : name;
  const short = inShort(node.counts);
  return (
    <Link
      {...tasksOf(flowId, node)}
      data-node={node.key}
      data-state={state}
      tabIndex={current ? 0 : -1}
      onFocus={() => props.onFocus(node.key)}
      onBlur={props.onLeave}
      onPointerEnter={() => props.onEnter(node.key)}
      onPointerLeave={props.onLeave}
      className="group outline-none"
    >
      {/* Its accessible name, and a tooltip. */}
      <title>{spoken(node, name, `${shown} ${short}`)}</title>
      <g transform={`translate(${x - 4} ${y - 4})`}>
        {node.total > 1 && <Box at={8} className={COLOURS[state].ground} />}
        <Box at={4} className={COLOURS[state].ground} />
        <Box
          at={2}
          more={4}
          className="fill-none stroke-2 stroke-transparent group-hover:stroke-line-strong group-focus-visible:stroke-accent"
        />
        {!far && <Words name={shown} state={state} short={short} />}
        <svg
          x={BAR.x + 4}
          y={BAR.y + 4}
          width={BAR.width}
          height={BAR.height}
          viewBox="0 0 100 4"
          preserveAspectRatio="none"
          aria-hidden="true"
        >
          {barOf(node.counts).map((part) => (
            <rect key={part.state} x={part.from} width={part.width} height={4} className={BAR_COLOURS[part.state]} />
          ))}
        </svg>
      </g>
    </Link>
  );
});

/** Begins with what is seen, for those who speak to the page; then what there is no room for. */
function spoken({ counts, total }: FlowNode, name: string, seen: string): string {
  const states = Object.values(counts).filter((each) => each > 0).length;
  const more = [...(seen.startsWith(name) ? [] : [name]), ...(total > 1 && states > 1 ? [inWords(counts)] : [])];
  return [seen, ...more].join(", ");
}

function Box({ at, more = 0, className }: { at: number; more?: number; className: string }) {
  return <rect x={at} y={at} width={NODE_WIDTH + more} height={NODE_HEIGHT + more} rx={8} className={className} />;
}

function Words({ name, state, short }: { name: string; state: State; short: string }) {
  const Icon = LOOKS[state]?.icon;
  return (
    <>
      {Icon && (
        <Icon
          x={14}
          y={16}
          width={18}
          height={18}
          className={classes(COLOURS[state].icon, state === "processing" && "motion-safe:animate-pulse")}
        />
      )}
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: only to cut off what is too wide; it is text */}
      <svg x={40} y={4} width={NODE_WIDTH - 46} height={NODE_HEIGHT}>
        <text x={0} y={20} className="fill-text font-semibold text-[13px]" unicodeBidi="isolate">
          {name}
        </text>
        <text x={0} y={37} className="fill-dim text-xs">
          {short}
        </text>
      </svg>
    </>
  );
}
