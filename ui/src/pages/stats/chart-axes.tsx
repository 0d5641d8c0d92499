import { CartesianGrid, Tooltip, XAxis, YAxis } from "recharts";
import { ChartTooltip } from "@/pages/stats/chart-tooltip";
import type { Step } from "@/pages/stats/steps";
import { tickLabel, ticksOf } from "@/pages/stats/time-axis";

export interface AxesOptions {
  format: (value: number) => string;
  whole?: boolean;
  /** The scale goes no further. */
  most?: number;
}

const LABEL = { fill: "var(--dim)", fontSize: 11 };

/** What all charts have in common. Recharts looks at its own children, so this is a function and no component. */
export function axes(steps: readonly Step[], { format, whole = false, most }: AxesOptions) {
  return (
    <>
      <CartesianGrid vertical={false} stroke="var(--line)" />
      <XAxis
        dataKey="at"
        ticks={ticksOf(steps)}
        tickFormatter={tickLabel(steps)}
        interval="equidistantPreserveStart"
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
        allowDecimals={!whole}
        tickCount={4}
        domain={most === undefined ? [0, "auto"] : [0, (highest: number) => Math.min(most, highest || most)]}
      />
      <Tooltip
        isAnimationActive={false}
        cursor={{ stroke: "var(--line-strong)", fill: "var(--raised)" }}
        content={(props) => <ChartTooltip active={props.active} payload={props.payload} format={format} />}
      />
    </>
  );
}
