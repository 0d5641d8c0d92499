import { memo } from "react";
import { figuresOf } from "@/pages/types/figures";
import { FigureLink, Limits, Pause, TypeName, type TypeProps } from "@/pages/types/type-parts";

/** A row for a narrow screen: all in sight, nothing to scroll sideways. */
export const TypeCard = memo(function TypeCard(props: TypeProps) {
  const { type } = props;
  return (
    <li data-type={type.type} className="space-y-2 px-4 py-3">
      <div className="flex items-start justify-between gap-3">
        <div className="min-w-0">
          <TypeName type={type} />
        </div>
        {props.mayOperate && <Pause {...props} text="Pause" />}
      </div>
      <dl className="grid grid-cols-3 gap-x-2 gap-y-1.5 sm:grid-cols-5 md:grid-cols-9">
        {figuresOf(type).map((figure) => (
          <div key={figure.column} data-figure={figure.column}>
            <dt className="truncate text-2xs text-dim">{figure.label}</dt>
            <dd>
              <FigureLink figure={figure} />
            </dd>
          </div>
        ))}
        <div className="col-span-full flex items-center gap-3">
          <dt className="text-2xs text-dim">Limits</dt>
          <dd className="grow">
            <Limits {...props} />
          </dd>
        </div>
      </dl>
    </li>
  );
});
