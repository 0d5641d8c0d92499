import { type ColumnDef, createColumnHelper } from "@tanstack/react-table";
import type { Task } from "@/api/model";
import { Checkbox } from "@/components/field";
import {
  AgeCell,
  AttemptsCell,
  ClaimedCell,
  CreatedCell,
  IdCell,
  StatusCell,
  shortId,
  TypeCell,
  WorkerCell,
} from "@/pages/tasks/cells";
import { RowMenu } from "@/pages/tasks/row-menu";

const column = createColumnHelper<Task>();

const shown: ColumnDef<Task>[] = [
  column.display({ id: "id", header: "ID", cell: ({ row }) => <IdCell task={row.original} /> }),
  column.display({ id: "type", header: "Type", cell: ({ row }) => <TypeCell task={row.original} /> }),
  column.display({ id: "status", header: "Status", cell: ({ row }) => <StatusCell task={row.original} /> }),
  column.display({ id: "attempts", header: "Attempts", cell: ({ row }) => <AttemptsCell task={row.original} /> }),
  column.display({
    id: "created",
    header: () => <span title="Newest first; the list has no other order">Created ↓</span>,
    cell: ({ row }) => <CreatedCell task={row.original} />,
  }),
  column.display({
    id: "age",
    header: () => <span title="From its creation to its end, or until now">Age</span>,
    cell: ({ row }) => <AgeCell task={row.original} />,
  }),
  column.display({
    id: "claimed",
    header: () => (
      <span title="The latest attempt, from its claim to its end or until now. It may wait in its worker for a moment; how long handlers run is on the page Stats">
        Claimed for
      </span>
    ),
    cell: ({ row }) => <ClaimedCell task={row.original} />,
  }),
  column.display({ id: "worker", header: "Worker", cell: ({ row }) => <WorkerCell task={row.original} /> }),
];

const select: ColumnDef<Task> = column.display({
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

const actions: ColumnDef<Task> = column.display({
  id: "actions",
  header: () => <span className="sr-only">Actions</span>,
  cell: ({ row }) => <RowMenu task={row.original} />,
});

export const LOOKING = shown;
/** For those who may act. */
export const OPERATING = [select, ...shown, actions];
