import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { ApiError } from "@/api/errors";
import { stringify } from "@/api/exact";
import { taskQuery, typeQuery, typesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Field, Select } from "@/components/field";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { useSession } from "@/hooks/use-session";
import { NewTaskForm } from "@/pages/new/new-task-form";
import { BackToList } from "@/pages/task/list-link";
import { NoTypes } from "@/pages/types/no-types";
import { escapeText } from "@/text/escape";

const route = getRouteApi("/new");

/** A task by hand: a new one, or one that was finished once more. */
export function NewTaskPage() {
  const { type, copyOf } = route.useSearch();
  return (
    <>
      <BackToList />
      {copyOf ? <Again taskId={copyOf} /> : <New type={type ?? ""} />}
    </>
  );
}

function Again({ taskId }: { taskId: string }) {
  const { mayOperate } = useSession();
  const { data: task, error, refetch } = useQuery({ ...taskQuery(taskId), refetchOnMount: false, meta: {} });
  return (
    <>
      <PageHeader title="Run again">
        {task && (
          <>
            A copy of <span className="break-all font-mono text-xs">{task.id}</span> under a new ID, due now, with the
            same options.
          </>
        )}
      </PageHeader>
      {error && !task ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !task ? (
        <Loading lines={6} />
      ) : !mayOperate ? (
        <NotAllowed />
      ) : (
        <Described key={task.id} type={task.type} copyOf={task.id} payload={task.payload} />
      )}
    </>
  );
}

function New({ type }: { type: string }) {
  const { maySubmit } = useSession();
  const navigate = useNavigate({ from: "/new" });
  const { data, error, refetch } = useQuery(typesQuery);
  const known = data?.types.map((each) => each.type) ?? [];
  const offered = !type || known.includes(type) ? known : [type, ...known];
  return (
    <>
      <PageHeader title="New task" />
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading lines={6} />
      ) : !maySubmit ? (
        <NotAllowed />
      ) : offered.length === 0 ? (
        <Card>
          <NoTypes />
        </Card>
      ) : (
        <div className="max-w-2xl space-y-4">
          <Field label="Type">
            <Select
              className="w-full"
              value={type}
              onChange={({ target }) => void navigate({ search: target.value ? { type: target.value } : {} })}
            >
              <option value="">Choose a type</option>
              {offered.map((each) => (
                <option key={each} value={each}>
                  {escapeText(each.length > 80 ? `${each.slice(0, 80)}…` : each)}
                </option>
              ))}
            </Select>
          </Field>
          {type && <Described key={type} type={type} copyOf={null} payload={{}} />}
        </div>
      )}
    </>
  );
}

interface DescribedProps {
  type: string;
  copyOf: string | null;
  payload: unknown;
}

/** With what is known of the type's arguments. */
function Described({ type, copyOf, payload }: DescribedProps) {
  const { data, error, refetch } = useQuery({ ...typeQuery(type), retry: false });
  const unknown = error instanceof ApiError && error.code === "type_not_found";
  if (error && !data && !unknown) return <ErrorState error={error} onRetry={refetch} />;
  if (!data && !unknown) return <Loading lines={6} />;
  const schema: unknown = data?.argumentSchema ?? null;
  return <NewTaskForm key={stringify(schema, 0)} type={type} schema={schema} copyOf={copyOf} payload={payload} />;
}

function NotAllowed() {
  return (
    <Card>
      <EmptyState title="Your token may not do this">
        To submit needs a worker's or an admin's token; to run a task again, an operator's or an admin's.
      </EmptyState>
    </Card>
  );
}
