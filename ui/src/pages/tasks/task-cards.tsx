import type { Row, Table } from "@tanstack/react-table";
import { memo } from "react";
import type { Task } from "@/api/model";
import { classes } from "@/components/classes";
import { Checkbox } from "@/components/field";
import { AttemptsCell, ClaimedCell, CreatedCell, IdCell, StatusCell, shortId, TypeCell } from "@/pages/tasks/cells";
import { looksSame } from "@/pages/tasks/looks-same";
import { RowMenu } from "@/pages/tasks/row-menu";

/** The table where it is too narrow for one. */
export function TaskCards({ table, operates }: { table: Table<Task>; operates: boolean }) {
  return (
    <>
      {operates && (
        // biome-ignore lint/a11y/noLabelWithoutControl: the check-box is the control
        <label className="flex h-11 items-center gap-3 border-b px-3 text-dim">
          <Checkbox
            checked={table.getIsAllRowsSelected()}
            mixed={table.getIsSomeRowsSelected()}
            onChange={table.getToggleAllRowsSelectedHandler()}
          />
          Select all on this page
        </label>
      )}
      <ul aria-label="Tasks, newest first">
        {table.getRowModel().rows.map((row) => (
          <TaskCard key={row.id} row={row} selected={row.getIsSelected()} operates={operates} />
        ))}
      </ul>
    </>
  );
}

interface TaskCardProps {
  row: Row<Task>;
  selected: boolean;
  operates: boolean;
}

const TaskCard = memo(
  ({ row, selected, operates }: TaskCardProps) => {
    const task = row.original;
    return (
      <li
        data-row={task.id}
        tabIndex={-1}
        className={classes("flex gap-3 border-b p-3 last:border-b-0", selected && "bg-accent-soft/60")}
      >
        {operates && (
          <Checkbox
            aria-label={`Select task ${shortId(task.id)}`}
            className="mt-1"
            checked={selected}
            onChange={row.getToggleSelectedHandler()}
          />
        )}
        <div className="min-w-0 grow space-y-1">
          <TypeCell task={task} />
          <StatusCell task={task} />
          <div className="flex flex-wrap items-center gap-x-3 text-dim text-xs">
            <IdCell task={task} />
            <CreatedCell task={task} />
            <span>
              <span className="sr-only">Attempts </span>
              <AttemptsCell task={task} />
            </span>
            <span>
              <span className="sr-only">Claimed for </span>
              <ClaimedCell task={task} />
            </span>
          </div>
        </div>
        {operates && <RowMenu task={task} />}
      </li>
    );
  },
  (had, has) =>
    had.selected === has.selected && had.operates === has.operates && looksSame(had.row.original, has.row.original),
);
