import { CartesianGrid, Tooltip, XAxis, YAxis } from "recharts";
import { ChartTooltip } from "@/pages/stats/chart-tooltip";
import { type Kind, logTicksTo, ticksTo } from "@/pages/stats/scale";
import { percent, type Step } from "@/pages/stats/steps";
import { tickLabel, ticksOf } from "@/pages/stats/time-axis";
import { count } from "@/text/number";
import { duration } from "@/text/time";

export interface AxesOptions {
  kind: Kind;
  /** The highest value in the chart. */
  most: number;
  log: boolean;
}

const FORMATS: Record<Kind, (value: number) => string> = {
  count: (value) => count(value < 10 ? Math.round(value * 10) / 10 : Math.round(value)),
  share: percent,
  duration,
};

const LABEL = { fill: "var(--dim)", fontSize: 11 };

/** What all charts have in common. Recharts looks at its own children, so this is a function and no component. */
export function axes(steps: readonly Step[], { kind, most, log }: AxesOptions) {
  const format = FORMATS[kind];
  const ticks = log ? logTicksTo(most, kind) : ticksTo(most, kind);
  return (
    <>
      <CartesianGrid vertical={false} stroke="var(--line)" />
      <XAxis
        dataKey="at"
        ticks={ticksOf(steps)}
        tickFormatter={tickLabel(steps)}
        interval="preserveStart"
        tick={LABEL}
        tickLine={false}
        stroke="var(--line-strong)"
        minTickGap={8}
      />
      <YAxis
        width={58}
        tick={LABEL}
        tickLine={false}
        axisLine={false}
        tickFormatter={format}
        ticks={ticks}
        domain={[0, ticks.at(-1) ?? 1]}
        scale={log ? "symlog" : "linear"}
        interval={0}
      />
      <Tooltip
        isAnimationActive={false}
        cursor={{ stroke: "var(--line-strong)", fill: "var(--raised)" }}
        content={(props) => <ChartTooltip active={props.active} payload={props.payload} format={format} />}
      />
    </>
  );
}
