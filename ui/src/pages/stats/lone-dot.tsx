import type { DotItemDotProps } from "recharts";
import type { Figures, Step } from "@/pages/stats/steps";

/** A sample between two gaps has no line to be seen by, so it gets a dot. */
export function loneDot(steps: readonly Step[], field: keyof Figures) {
  return ({ key, cx, cy, index, stroke }: DotItemDotProps) => {
    const beside = steps[index - 1]?.[field] ?? steps[index + 1]?.[field] ?? null;
    const lone = steps[index]?.[field] != null && beside === null && cx !== undefined && cy !== undefined;
    return lone ? <circle key={key} cx={cx} cy={cy} r={2.5} fill={stroke} /> : <g key={key} />;
  };
}
