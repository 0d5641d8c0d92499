import { type ColumnDef, createColumnHelper } from "@tanstack/react-table";
import type { ReactNode } from "react";
import type { ListedTask } from "@/api/model";
import { Checkbox } from "@/components/field";
import {
  AgeCell,
  ArgumentsCell,
  AttemptsCell,
  CreatedCell,
  DurationCell,
  EndedCell,
  ErrorCell,
  IdCell,
  IdempotencyCell,
  PriorityCell,
  StatusCell,
  shortId,
  TagsCell,
  TypeCell,
  WorkerCell,
} from "@/pages/tasks/cells";
import { COLUMN_IDS, type ColumnId, LABELS } from "@/pages/tasks/column-choice";
import type { Order } from "@/pages/tasks/order";
import { RowMenu } from "@/pages/tasks/row-menu";
import { SortButton, type Sorting } from "@/pages/tasks/sort-button";

const column = createColumnHelper<ListedTask>();

export const CELLS: Record<ColumnId, (props: { task: ListedTask }) => ReactNode> = {
  arguments: ArgumentsCell,
  error: ErrorCell,
  tags: TagsCell,
  idempotency: IdempotencyCell,
  priority: PriorityCell,
  attempts: AttemptsCell,
  created: CreatedCell,
  ended: EndedCell,
  age: AgeCell,
  duration: DurationCell,
  worker: WorkerCell,
};

const TITLES: Partial<Record<ColumnId, string>> = {
  arguments: "The first arguments of the payload",
  error: "What the latest failure said in the end",
  age: "From its creation to its end, or until now",
  duration: "How long the handler ran in the latest attempt; for one that runs, since its claim",
};
const SORTED: Partial<Record<ColumnId, Order>> = { created: "created", ended: "ended", duration: "duration" };

/** `sorting`: the order of the list, and how to change it. */
export function columnsOf(chosen: readonly ColumnId[], operates: boolean, sorting: Sorting): ColumnDef<ListedTask>[] {
  const shown = COLUMN_IDS.filter((id) => chosen.includes(id)).map((id) => chosenColumn(id, sorting));
  const wide = shown.filter(({ id }) => id === "arguments");
  const rest = shown.filter(({ id }) => id !== "arguments");
  const all = [ID, TYPE, ...wide, STATUS, ...rest];
  return operates ? [SELECT, ...all, ACTIONS] : all;
}

function chosenColumn(id: ColumnId, sorting: Sorting): ColumnDef<ListedTask> {
  const Shown = CELLS[id];
  const order = SORTED[id];
  return column.display({
    id,
    header: () =>
      order ? (
        <SortButton order={order} label={LABELS[id]} title={TITLES[id]} sorting={sorting} />
      ) : (
        <span title={TITLES[id]}>{LABELS[id]}</span>
      ),
    cell: ({ row }) => <Shown task={row.original} />,
  });
}

const ID = column.display({ id: "id", header: "ID", cell: ({ row }) => <IdCell task={row.original} /> });
const TYPE = column.display({ id: "type", header: "Type", cell: ({ row }) => <TypeCell task={row.original} /> });
const STATUS = column.display({
  id: "status",
  header: "Status",
  cell: ({ row }) => <StatusCell task={row.original} />,
});

const SELECT: ColumnDef<ListedTask> = column.display({
  id: "select",
  header: ({ table }) => (
    <Checkbox
      aria-label="Select all on this page"
      className="block"
      checked={table.getIsAllRowsSelected()}
      mixed={table.getIsSomeRowsSelected()}
      onChange={table.getToggleAllRowsSelectedHandler()}
    />
  ),
  cell: ({ row }) => (
    <Checkbox
      aria-label={`Select task ${shortId(row.id)}`}
      className="block"
      checked={row.getIsSelected()}
      onChange={row.getToggleSelectedHandler()}
    />
  ),
});

const ACTIONS: ColumnDef<ListedTask> = column.display({
  id: "actions",
  header: () => <span className="sr-only">Actions</span>,
  cell: ({ row }) => <RowMenu task={row.original} />,
});
