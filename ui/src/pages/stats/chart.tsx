import { type ReactNode, useState } from "react";
import { Area, Bar, ComposedChart, Line, ReferenceLine } from "recharts";
import { axes } from "@/pages/stats/chart-axes";
import { ChartFrame } from "@/pages/stats/chart-frame";
import { loneDot } from "@/pages/stats/lone-dot";
import type { Mark } from "@/pages/stats/marks";
import type { Kind } from "@/pages/stats/scale";
import type { Figures, Step } from "@/pages/stats/steps";
import { escapeText } from "@/text/escape";

export interface Drawn {
  field: keyof Figures;
  name: string;
  colour: string;
  /** Bars are stacked; on a logarithmic scale, where heights do not add up, they are lines. */
  shape: "bar" | "line" | "area";
  dash?: string;
  /** Laid over, where an earlier time is. */
  compared?: boolean;
}

export interface ChartProps {
  title: string;
  unit: string;
  summary: ReactNode;
  kind: Kind;
  drawn: readonly Drawn[];
  empty: string | null;
  steps: Step[];
  /** What is laid over, in words; null: nothing. */
  earlier: string | null;
  log: boolean;
  marks: readonly Mark[];
}

const STILL = { isAnimationActive: false } as const;
const MARGIN = { top: 8, right: 8, bottom: 0, left: 0 };
const MARK_TEXT = 16;

/** One chart. Where there was no sample there is a gap, not a zero. */
export function Chart({ title, unit, summary, kind, drawn, empty, steps, earlier, log, marks }: ChartProps) {
  const [hidden, setHidden] = useState<readonly string[]>([]);
  const all =
    earlier === null ? drawn : drawn.flatMap((each) => (each.compared ? [each, laidOver(each, earlier)] : each));
  const legend = all.map(({ name, colour, dash }) => ({ name, colour, ...(dash ? { dash } : {}) }));
  const shown = all.filter(({ name }) => !hidden.includes(name));
  const logarithmic = log && kind !== "share";

  function toggle(name: string) {
    setHidden(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);
  }

  return (
    <ChartFrame
      title={title}
      unit={unit}
      summary={summary}
      legend={legend}
      hidden={hidden}
      onToggle={toggle}
      empty={empty}
    >
      {(label) => (
        <ComposedChart data={steps} margin={MARGIN} syncId="over-time" aria-label={label} barCategoryGap="12%">
          {axes(steps, { kind, most: highest(steps, shown, logarithmic), log: logarithmic })}
          {shown.map((each) => draw(each, steps, logarithmic))}
          {marks.map(({ version, at, late }) => (
            <ReferenceLine
              key={version}
              x={at}
              stroke="var(--accent)"
              strokeDasharray="3 2"
              label={{
                value: escapeText(version).slice(0, MARK_TEXT),
                position: late ? "insideTopRight" : "insideTopLeft",
                fill: "var(--accent)",
                fontSize: 10,
              }}
            />
          ))}
        </ComposedChart>
      )}
    </ChartFrame>
  );
}

interface Shown extends Drawn {
  before?: true;
}

function laidOver(drawn: Drawn, earlier: string): Shown {
  return { ...drawn, name: `${drawn.name}, ${earlier}`, shape: "line", dash: "2 3", before: true };
}

function draw(drawn: Shown, steps: readonly Step[], log: boolean) {
  const { field, name, colour, dash, before } = drawn;
  const key = before ? `before.${field}` : field;
  const common = { ...STILL, key, dataKey: key, name };
  if (drawn.shape === "bar" && !log) return <Bar {...common} stackId="all" fill={colour} />;
  const line = {
    ...common,
    stroke: colour,
    strokeWidth: 1.5,
    ...(before ? { strokeOpacity: 0.75 } : {}),
    ...(dash ? { strokeDasharray: dash } : {}),
  };
  if (drawn.shape === "area") return <Area {...line} fill={colour} fillOpacity={0.15} dot={loneDot(steps, field)} />;
  return <Line {...line} dot={before ? false : loneDot(steps, field)} />;
}

function highest(steps: readonly Step[], shown: readonly Shown[], log: boolean): number {
  const stacked = log ? [] : shown.filter(({ shape }) => shape === "bar");
  const single = shown.filter((each) => !stacked.includes(each));
  return Math.max(
    0,
    ...steps.flatMap((step) => [
      stacked.reduce((sum, { field }) => sum + (step[field] ?? 0), 0),
      ...single.map(({ field, before }) => (before ? step.before?.[field] : step[field]) ?? 0),
    ]),
  );
}
