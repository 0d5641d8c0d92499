import { type ReactElement, type ReactNode, useId } from "react";
import { ResponsiveContainer } from "recharts";

export interface ChartFrameProps {
  title: string;
  unit: string;
  /** The chart in a sentence, for everybody. */
  summary: ReactNode;
  series: readonly { name: string; colour: string; dash?: string }[];
  /** Why there is nothing to draw. */
  empty: string | null;
  /** Gets the name to give to the chart. */
  children: (label: string) => ReactElement;
}

const HEIGHT = 180;

export function ChartFrame({ title, unit, summary, series, empty, children }: ChartFrameProps) {
  const id = useId();
  return (
    <figure aria-labelledby={id} className="min-w-0">
      <figcaption>
        <h3 id={id} className="font-semibold">
          {title} <span className="font-normal text-dim text-xs">{unit}</span>
        </h3>
        <p className="min-h-5 text-dim text-xs">{summary}</p>
      </figcaption>
      {empty ? (
        <p className="mt-2 grid h-[204px] place-items-center rounded-md border border-dashed px-4 text-center text-dim">
          {empty}
        </p>
      ) : (
        <>
          <div className="mt-2 h-[180px]">
            <ResponsiveContainer width="100%" height={HEIGHT}>
              {children(`${title}, ${unit}. Arrow keys move between the steps; the table has all figures.`)}
            </ResponsiveContainer>
          </div>
          <ul aria-hidden="true" className="flex min-h-6 flex-wrap items-end gap-x-4 pl-14 text-dim text-xs">
            {series.map(({ name, colour, dash }) => (
              <li key={name} className="flex items-center gap-1.5">
                <svg width="16" height="8" aria-hidden="true">
                  <line
                    x1="0"
                    x2="16"
                    y1="4"
                    y2="4"
                    stroke={colour}
                    strokeWidth="3"
                    {...(dash ? { strokeDasharray: dash } : {})}
                  />
                </svg>
                {name}
              </li>
            ))}
          </ul>
        </>
      )}
    </figure>
  );
}
