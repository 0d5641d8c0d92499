import { getCoreRowModel, useReactTable } from "@tanstack/react-table";
import { ArrowUp } from "lucide-react";
import { useEffect, useMemo, useRef } from "react";
import type { BulkAction, ListedTask, Task } from "@/api/model";
import { takeLastTask } from "@/app/last-list";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { useMedia } from "@/hooks/use-media";
import { useSession } from "@/hooks/use-session";
import { type ColumnId, USUAL } from "@/pages/tasks/column-choice";
import { columnsOf } from "@/pages/tasks/columns";
import { ListOptions } from "@/pages/tasks/list-options";
import type { NewTasks } from "@/pages/tasks/newer";
import { Paging, type PagingProps } from "@/pages/tasks/paging";
import { SelectionBar } from "@/pages/tasks/selection-bar";
import type { Sorting } from "@/pages/tasks/sort-button";
import { TaskCards } from "@/pages/tasks/task-cards";
import { TaskTable } from "@/pages/tasks/task-table";
import type { useBusy } from "@/pages/tasks/use-busy";
import { useRowKeys } from "@/pages/tasks/use-row-keys";
import type { useSelection } from "@/pages/tasks/use-selection";
import { plural } from "@/text/number";

export interface TaskListProps {
  tasks: ListedTask[];
  /** "51–100 of 120" */
  range: string;
  /** How many match, in words; null where they are all on this page. */
  total: string | null;
  /** What is shown belongs to the search before. */
  outdated: boolean;
  newTasks: NewTasks;
  onShowNew: () => void;
  onOpen: (id: string) => void;
  onAct: (action: BulkAction, selected: readonly Task[] | "all") => void;
  selection: ReturnType<typeof useSelection>;
  handlers: ReturnType<typeof useBusy>["handlers"];
  forget: ReturnType<typeof useBusy>["forget"];
  paging: Omit<PagingProps, "label">;
  columns: readonly ColumnId[];
  onColumns: (columns: readonly ColumnId[]) => void;
  sorting: Sorting;
}

export function TaskList(props: TaskListProps) {
  const { tasks, range, total, outdated, newTasks, onShowNew, onOpen, onAct, selection, handlers, forget, paging } =
    props;
  const { columns, onColumns, sorting } = props;
  const { mayOperate } = useSession();
  const wide = useMedia("(min-width: 54rem)");
  const list = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => columnsOf(columns, mayOperate, sorting), [columns, mayOperate, sorting]);
  const table = useReactTable({
    data: tasks,
    columns: shown,
    getRowId: ({ id }) => id,
    getCoreRowModel: getCoreRowModel(),
    state: { rowSelection: selection.rows },
    onRowSelectionChange: selection.change,
  });
  const selected = tasks.filter(({ id }) => selection.rows[id]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other tasks may mean that the row with the focus is gone
  useEffect(() => forget(false), [forget, tasks]);
  useEffect(() => () => forget(true), [forget]);
  useEffect(() => focusLastTask(list.current), []);
  useRowKeys({
    list,
    onOpen,
    onSelect: mayOperate ? (id) => table.getRow(id).toggleSelected() : null,
  });

  return (
    <Card flush>
      <div className="flex min-h-11 flex-wrap items-center justify-between gap-x-4 gap-y-1 border-b px-3 py-1">
        {mayOperate && selected.length > 0 ? (
          <SelectionBar
            selected={selected}
            all={selection.all}
            total={selected.length === tasks.length ? total : null}
            onAll={selection.selectAll}
            onClear={selection.clear}
            onAct={(action) => onAct(action, selection.all ? "all" : selected)}
          />
        ) : (
          <p className="flex min-h-8 items-center gap-3 text-dim">
            <span data-range="">{range}</span>
            {newTasks.count > 0 && (
              <Button
                size="small"
                className="text-accent!"
                icon={<ArrowUp className="size-3.5" aria-hidden="true" />}
                onClick={onShowNew}
              >
                {newTasks.atLeast ? `${newTasks.count}+ new tasks` : plural(newTasks.count, "new task")}
              </Button>
            )}
          </p>
        )}
        <div className={classes("flex flex-wrap items-center gap-1", selected.length > 0 && "max-md:hidden")}>
          <ListOptions columns={columns} onColumns={onColumns} sorting={sorting} />
          <Paging label="Pages" {...paging} />
        </div>
      </div>
      <div
        ref={list}
        {...handlers}
        aria-busy={outdated}
        className={classes(outdated && "opacity-60 transition-opacity delay-300")}
      >
        {wide ? (
          <TaskTable table={table} order={sorting.order} chosen={columns !== USUAL} onOpen={onOpen} />
        ) : (
          <TaskCards table={table} operates={mayOperate} columns={columns} order={sorting.order} onOpen={onOpen} />
        )}
      </div>
    </Card>
  );
}

/** Who comes back from a task goes on from its row. */
function focusLastTask(list: HTMLElement | null): void {
  const id = takeLastTask();
  if (id) list?.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
}
