import type { Step } from "@/pages/stats/steps";
import { stepLabel } from "@/pages/stats/time-axis";

interface Entry {
  name?: unknown;
  value?: unknown;
  color?: string | undefined;
  payload?: unknown;
}

export interface ChartTooltipProps {
  active: boolean | undefined;
  payload: readonly Entry[] | undefined;
  format: (value: number) => string;
}

export function ChartTooltip({ active, payload, format }: ChartTooltipProps) {
  const step = payload?.[0]?.payload as Step | undefined;
  if (!active || !payload || !step) return null;
  return (
    <div className="rounded-md border bg-surface px-3 py-2 text-xs shadow-md">
      <p className="font-medium">
        {stepLabel(step)}
        {step.growing && <span className="font-normal text-dim"> so far</span>}
      </p>
      <dl className="mt-1 space-y-0.5">
        {payload.map(({ name, value, color }) => (
          <div key={String(name)} className="flex items-center gap-2">
            <span aria-hidden="true" className="size-2 rounded-xs" style={{ background: color }} />
            <dt className="grow text-dim">{String(name)}</dt>
            <dd className="pl-3 font-medium">{typeof value === "number" ? format(value) : "–"}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
