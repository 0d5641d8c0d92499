import type { Row, Table } from "@tanstack/react-table";
import { memo } from "react";
import type { ListedTask } from "@/api/model";
import { classes } from "@/components/classes";
import { Checkbox } from "@/components/field";
import { IdCell, StatusCell, shortId, TypeCell } from "@/pages/tasks/cells";
import { type ColumnId, LABELS, WIDE } from "@/pages/tasks/column-choice";
import { CELLS } from "@/pages/tasks/columns";
import { looksSame } from "@/pages/tasks/looks-same";
import { ORDERS, type Order } from "@/pages/tasks/order";
import { rowLink } from "@/pages/tasks/row-link";
import { RowMenu } from "@/pages/tasks/row-menu";

/** The table where it is too narrow for one. */
export interface TaskCardsProps {
  table: Table<ListedTask>;
  operates: boolean;
  columns: readonly ColumnId[];
  order: Order;
  onOpen: (id: string) => void;
}

export function TaskCards({ table, operates, columns, order, onOpen }: TaskCardsProps) {
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
      <ul aria-label={`Tasks, ${ORDERS[order].words}`}>
        {table.getRowModel().rows.map((row) => (
          <TaskCard
            key={row.id}
            row={row}
            selected={row.getIsSelected()}
            operates={operates}
            columns={columns}
            onOpen={onOpen}
          />
        ))}
      </ul>
    </>
  );
}

interface TaskCardProps {
  row: Row<ListedTask>;
  selected: boolean;
  operates: boolean;
  columns: readonly ColumnId[];
  onOpen: (id: string) => void;
}

const TaskCard = memo(
  ({ row, selected, operates, columns, onOpen }: TaskCardProps) => {
    const task = row.original;
    return (
      <li
        data-row={task.id}
        tabIndex={-1}
        {...rowLink(task.id, onOpen)}
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
          {columns
            .filter((id) => WIDE.includes(id))
            .map((id) => (
              <Value key={id} id={id} task={task} />
            ))}
          <div className="flex flex-wrap items-center gap-x-3 text-dim text-xs">
            <IdCell task={task} />
            {columns
              .filter((id) => !WIDE.includes(id))
              .map((id) => (
                <Value key={id} id={id} task={task} />
              ))}
          </div>
        </div>
        {operates && <RowMenu task={task} />}
      </li>
    );
  },
  (had, has) =>
    had.selected === has.selected &&
    had.operates === has.operates &&
    had.columns.join() === has.columns.join() &&
    looksSame(had.row.original, has.row.original),
);

/** What the card says without being told what it is. */
const PLAIN: readonly ColumnId[] = [...WIDE, "attempts", "created", "duration"];

function Value({ id, task }: { id: ColumnId; task: ListedTask }) {
  if (isEmpty(id, task)) return null;
  const Shown = CELLS[id];
  return (
    <div className="flex min-w-0 max-w-full gap-1">
      <span className={classes(PLAIN.includes(id) && "sr-only")}>{LABELS[id]}</span>
      <span className="min-w-0">
        <Shown task={task} />
      </span>
    </div>
  );
}

/** A card has no columns to keep in line: what is not there is left out. */
function isEmpty(id: ColumnId, task: ListedTask): boolean {
  const none: Partial<Record<ColumnId, boolean>> = {
    error: task.errorLine === null,
    tags: Object.keys(task.tags).length === 0,
    idempotency: task.idempotencyKey === null,
    ended: task.completedAt === null,
    duration: task.runMs === null && task.status !== "processing",
    worker: task.workerId === null && task.lastWorkerId === null,
  };
  return none[id] ?? false;
}
