import { flexRender, type Row as TableRow, type Table as TaskTableModel } from "@tanstack/react-table";
import { memo } from "react";
import type { ListedTask } from "@/api/model";
import { classes } from "@/components/classes";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { looksSame } from "@/pages/tasks/looks-same";
import { ORDERS, type Order } from "@/pages/tasks/order";
import { rowLink } from "@/pages/tasks/row-link";

/** Fixed, so that no column moves when a text in it grows. What is left is the type's. */
const WIDTHS: Record<string, string> = {
  select: "w-9 pr-0",
  id: "w-37",
  status: "w-60",
  priority: "w-16",
  attempts: "w-20",
  created: "w-22",
  ended: "w-22",
  age: "w-18",
  duration: "w-23",
  worker: "w-26",
  actions: "w-10 px-1!",
};
/** The usual ones make room where it is narrow. Those that somebody chose are all there, and the table scrolls. */
const GIVES_WAY: Record<string, string> = {
  arguments: "max-xl:hidden",
  attempts: "max-lg:hidden",
  duration: "max-xl:hidden",
};
/** Beside what somebody has chosen the type takes no more than it needs. */
const CHOSEN: Record<string, string> = { type: "w-40" };
const EVERY = "overflow-hidden px-2 whitespace-nowrap first:pl-3";

export interface TaskTableProps {
  table: TaskTableModel<ListedTask>;
  order: Order;
  /** Not the usual columns. */
  chosen: boolean;
  onOpen: (id: string) => void;
}

export function TaskTable({ table, order, chosen, onOpen }: TaskTableProps) {
  const ids = table.getVisibleLeafColumns().map(({ id }) => id);
  const classOf = (id: string) => classes(EVERY, WIDTHS[id], chosen ? CHOSEN[id] : GIVES_WAY[id]);
  return (
    <Table
      label={`Tasks, ${ORDERS[order].words}`}
      className={classes("table-fixed", chosen ? leastWidth(ids) : "min-w-150")}
    >
      <thead>
        {table.getHeaderGroups().map((group) => (
          <tr key={group.id}>
            {group.headers.map((header) => (
              <HeaderCell
                key={header.id}
                className={classOf(header.column.id)}
                {...(header.column.id === order ? { "aria-sort": "descending" as const } : {})}
              >
                {flexRender(header.column.columnDef.header, header.getContext())}
              </HeaderCell>
            ))}
          </tr>
        ))}
      </thead>
      <tbody>
        {table.getRowModel().rows.map((row) => (
          <TaskRow
            key={row.id}
            row={row}
            columns={ids.join()}
            classOf={classOf}
            selected={row.getIsSelected()}
            onOpen={onOpen}
          />
        ))}
      </tbody>
    </Table>
  );
}

/** So that no column is too narrow to read; beyond the window the table scrolls. */
function leastWidth(ids: readonly string[]): string {
  const wide = ids.filter((id) => WIDTHS[id] === undefined).length;
  const size = ids.length + wide;
  return size <= 9 ? "min-w-180" : size <= 12 ? "min-w-240" : size <= 15 ? "min-w-330" : "min-w-420";
}

interface TaskRowProps {
  row: TableRow<ListedTask>;
  columns: string;
  classOf: (id: string) => string;
  selected: boolean;
  onOpen: (id: string) => void;
}

/** Drawn anew only when something that it shows has changed, however often the list is read. */
const TaskRow = memo(
  ({ row, classOf, selected, onOpen }: TaskRowProps) => (
    <Row
      data-row={row.id}
      tabIndex={-1}
      {...rowLink(row.id, onOpen)}
      className={classes(
        "group cursor-pointer -outline-offset-2 focus:bg-raised focus:outline-2 focus:outline-accent",
        selected && "bg-accent-soft/60",
      )}
    >
      {row.getVisibleCells().map((cell) => (
        <Cell key={cell.id} className={classOf(cell.column.id)}>
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </Cell>
      ))}
    </Row>
  ),
  (had, has) =>
    had.selected === has.selected && had.columns === has.columns && looksSame(had.row.original, has.row.original),
);
