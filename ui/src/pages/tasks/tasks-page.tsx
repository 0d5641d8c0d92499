import { Search } from "lucide-react";
import { useMemo } from "react";
import type { BulkAction, ListedTask, Task } from "@/api/model";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { useSession } from "@/hooks/use-session";
import { AllMenu } from "@/pages/tasks/all-menu";
import { NoMatch, NoTasks } from "@/pages/tasks/empty";
import { ExportMenu } from "@/pages/tasks/export-menu";
import { NewTaskLink } from "@/pages/tasks/new-task-link";
import { orderObstacle } from "@/pages/tasks/order";
import { rangeOf, totalOf } from "@/pages/tasks/range";
import { SavedSearches } from "@/pages/tasks/saved-dialog";
import { parse } from "@/pages/tasks/search/filter";
import { stopped } from "@/pages/tasks/search/notes";
import { toBulkFilter, toTaskQuery } from "@/pages/tasks/search/requests";
import { SearchBar } from "@/pages/tasks/search-bar";
import type { Sorting } from "@/pages/tasks/sort-button";
import { TaskActionsProvider, useTaskActions } from "@/pages/tasks/task-actions";
import { TaskList } from "@/pages/tasks/task-list";
import { useBusy } from "@/pages/tasks/use-busy";
import { useMinute } from "@/pages/tasks/use-minute";
import { usePlace } from "@/pages/tasks/use-place";
import { useSelection } from "@/pages/tasks/use-selection";
import { useTaskList } from "@/pages/tasks/use-task-list";

export function TasksPage() {
  return (
    <TaskActionsProvider>
      <Tasks />
    </TaskActionsProvider>
  );
}

function Tasks() {
  const place = usePlace();
  const { q, cursor, size } = place;
  const { mayOperate, maySubmit } = useSession();
  const { actOnMany } = useTaskActions();
  const parsed = useMemo(() => parse(q), [q]);
  const readable = parsed.problems.length === 0;
  const minute = useMinute(q, parsed.filter.last !== null || parsed.filter.ended !== null);
  const barred = orderObstacle(place.order, parsed.filter);
  const order = barred ? "created" : place.order;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the way to another order goes by these
  const sorting = useMemo<Sorting>(
    () => ({ order, onOrder: place.orderBy, obstacle: (each) => orderObstacle(each, parsed.filter) }),
    [order, parsed, size, place.columns],
  );
  const view = JSON.stringify([q, cursor, size, order]);
  const selection = useSelection(view);
  const { busy, handlers, forget } = useBusy();
  const works = busy || Object.keys(selection.rows).length > 0;
  const matching = toTaskQuery(parsed.filter, minute);
  const query = {
    ...matching,
    limit: Number(size),
    ...(cursor && { cursor }),
    ...(order !== "created" && { sort: order }),
  };
  const { page, tasks, newTasks, release } = useTaskList(query, view, readable, works);
  const { data, error, refetch } = page;
  const settled = readable && data !== undefined && !page.isPlaceholderData;
  const any = settled && (data.total > 0 || data.totalCapped);

  function act(action: BulkAction, on: readonly Task[] | "all") {
    const all = on === "all";
    actOnMany({
      action,
      filter: all ? toBulkFilter(parsed.filter, minute) : { ids: on.map(({ id }) => id) },
      search: all ? q : null,
      size: !all ? on.length : data && !data.totalCapped ? data.total : null,
      onDone: selection.clear,
    });
  }

  function showNew() {
    selection.clear();
    release();
    place.first();
    window.scrollTo({ top: 0 });
  }

  return (
    <>
      <PageHeader
        title="Tasks"
        actions={
          <>
            <SavedSearches current={place.view} onOpen={place.openView} />
            {any && <ExportMenu query={matching} />}
            {any && mayOperate && <AllMenu data={data} onAct={(action) => act(action, "all")} />}
            {maySubmit && <NewTaskLink />}
          </>
        }
      />
      <SearchBar text={q} parsed={parsed} page={data} more={barred} onSearch={place.search} />
      {error && data && <ErrorState error={error} onRetry={refetch} compact />}
      {!readable ? (
        <Card>
          <EmptyState
            icon={Search}
            title="This search cannot be read"
            actions={<Button onClick={() => place.search("")}>Clear the filter</Button>}
          >
            Correct what is named above.
          </EmptyState>
        </Card>
      ) : error && !data ? (
        <Card>
          <ErrorState error={error} onRetry={refetch} />
          {(q || cursor) && <Button onClick={() => place.search("")}>Show all tasks</Button>}
        </Card>
      ) : !data || !tasks ? (
        <Card>
          <Loading lines={10} label="Loading tasks" />
        </Card>
      ) : tasks.length === 0 ? (
        <Card>
          {q === "" && !cursor ? (
            <NoTasks />
          ) : (
            <NoMatch
              beyond={cursor !== null}
              onFirst={place.first}
              onOlder={data.nextCursor ? () => place.next(data.nextCursor ?? "") : null}
              onClear={() => place.search("")}
            />
          )}
        </Card>
      ) : (
        <TaskList
          tasks={tasks as ListedTask[]}
          range={rangeOf(cursor && stopped(parsed.filter, data) ? null : place.before, tasks.length, data, order)}
          columns={place.columns}
          onColumns={place.choose}
          sorting={sorting}
          total={data.nextCursor !== null || cursor !== null ? totalOf(data) : null}
          outdated={page.isPlaceholderData}
          newTasks={newTasks}
          onShowNew={showNew}
          onOpen={place.open}
          onAct={act}
          selection={selection}
          handlers={handlers}
          forget={forget}
          paging={{
            onFirst: cursor ? place.first : null,
            onPrevious: place.previous ?? (cursor ? "unknown" : null),
            onNext: settled && data.nextCursor ? () => place.next(data.nextCursor ?? "") : null,
            size,
            onSize: place.resize,
          }}
        />
      )}
    </>
  );
}
