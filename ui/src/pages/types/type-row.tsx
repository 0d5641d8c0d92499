import { memo } from "react";
import { Cell, Row } from "@/components/table";
import { figuresOf } from "@/pages/types/figures";
import { FigureLink, Limits, Pause, TypeName, type TypeProps } from "@/pages/types/type-parts";

export const TypeRow = memo(function TypeRow(props: TypeProps) {
  const { type } = props;
  return (
    <Row data-type={type.type} className="bg-surface hover:bg-raised!">
      <Cell className="sticky left-0 min-w-40 max-w-80 bg-inherit">
        <TypeName type={type} />
      </Cell>
      {figuresOf(type).map((figure) => (
        <Cell key={figure.column} className="whitespace-nowrap px-2! text-right" data-figure={figure.column}>
          <FigureLink figure={figure} />
        </Cell>
      ))}
      <Cell className="px-2!">
        <Limits {...props} />
      </Cell>
      <Cell className="px-2!">
        <Pause {...props} />
      </Cell>
    </Row>
  );
});
