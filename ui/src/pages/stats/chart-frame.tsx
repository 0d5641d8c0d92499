import { type ReactElement, type ReactNode, useId } from "react";
import { ResponsiveContainer } from "recharts";

export interface LegendEntry {
  name: string;
  colour: string;
  dash?: string;
}

export interface ChartFrameProps {
  title: string;
  unit: string;
  /** The chart in a sentence, for everybody. */
  summary: ReactNode;
  legend: readonly LegendEntry[];
  /** Names of those that are switched off. */
  hidden: readonly string[];
  onToggle: (name: string) => void;
  /** Why there is nothing to draw. */
  empty: string | null;
  /** Gets the name to give to the chart. */
  children: (label: string) => ReactElement;
}

const HEIGHT = 180;

export function ChartFrame({ title, unit, summary, legend, hidden, onToggle, empty, children }: ChartFrameProps) {
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
        <p className="mt-2 grid h-[208px] place-items-center rounded-md border border-dashed px-4 text-center text-dim">
          {empty}
        </p>
      ) : (
        <>
          <div className="mt-2 h-[180px]">
            <ResponsiveContainer width="100%" height={HEIGHT}>
              {children(`${title}, ${unit}. Arrow keys move between the steps; the table has all figures.`)}
            </ResponsiveContainer>
          </div>
          <ul
            aria-label={`Shown in ${title}`}
            className="flex min-h-7 flex-wrap items-end gap-x-1 pl-12 text-dim text-xs"
          >
            {legend.map(({ name, colour, dash }) => (
              <li key={name}>
                <button
                  type="button"
                  aria-pressed={!hidden.includes(name)}
                  title={hidden.includes(name) ? `Show ${name}` : `Hide ${name}`}
                  onClick={() => onToggle(name)}
                  className="group inline-flex h-7 items-center gap-1.5 rounded-md px-1.5 hover:bg-raised hover:text-text"
                >
                  <svg width="16" height="8" aria-hidden="true" className="group-aria-[pressed=false]:opacity-30">
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
                  <span className="group-aria-[pressed=false]:line-through">{name}</span>
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </figure>
  );
}
