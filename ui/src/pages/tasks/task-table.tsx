import { flexRender, type Row as TableRow, type Table as TaskTableModel } from "@tanstack/react-table";
import { memo } from "react";
import type { Task } from "@/api/model";
import { classes } from "@/components/classes";
import { Cell, HeaderCell, Row, Table } from "@/components/table";
import { looksSame } from "@/pages/tasks/looks-same";

/** Fixed, so that no column moves when a text in it grows. What is left is the type's. */
const WIDTHS: Record<string, string> = {
  select: "w-9 pr-0",
  id: "w-37",
  type: "",
  status: "w-60",
  attempts: "w-20 max-lg:hidden",
  created: "w-21",
  age: "w-18 max-2xl:hidden",
  claimed: "w-24 max-xl:hidden",
  worker: "w-26 max-xl:hidden",
  actions: "w-10 px-1!",
};
const EVERY = "overflow-hidden px-2 whitespace-nowrap first:pl-3";

export function TaskTable({ table }: { table: TaskTableModel<Task> }) {
  return (
    <Table label="Tasks, newest first" className="min-w-150 table-fixed">
      <thead>
        {table.getHeaderGroups().map((group) => (
          <tr key={group.id}>
            {group.headers.map((header) => (
              <HeaderCell
                key={header.id}
                className={classes(EVERY, WIDTHS[header.column.id])}
                {...(header.column.id === "created" ? { "aria-sort": "descending" as const } : {})}
              >
                {flexRender(header.column.columnDef.header, header.getContext())}
              </HeaderCell>
            ))}
          </tr>
        ))}
      </thead>
      <tbody>
        {table.getRowModel().rows.map((row) => (
          <TaskRow key={row.id} row={row} columns={row.getVisibleCells().length} selected={row.getIsSelected()} />
        ))}
      </tbody>
    </Table>
  );
}

interface TaskRowProps {
  row: TableRow<Task>;
  columns: number;
  selected: boolean;
}

/** Drawn anew only when something that it shows has changed, however often the list is read. */
const TaskRow = memo(
  ({ row, selected }: TaskRowProps) => (
    <Row
      data-row={row.id}
      tabIndex={-1}
      className={classes(
        "group -outline-offset-2 focus:bg-raised focus:outline-2 focus:outline-accent",
        selected && "bg-accent-soft/60",
      )}
    >
      {row.getVisibleCells().map((cell) => (
        <Cell key={cell.id} className={classes(EVERY, WIDTHS[cell.column.id])}>
          {flexRender(cell.column.columnDef.cell, cell.getContext())}
        </Cell>
      ))}
    </Row>
  ),
  (had, has) =>
    had.selected === has.selected && had.columns === has.columns && looksSame(had.row.original, has.row.original),
);
