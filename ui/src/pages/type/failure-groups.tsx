import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, RotateCw } from "lucide-react";
import type { FailureGroup } from "@/api/model";
import { failuresQuery } from "@/api/queries";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";
import { useLive } from "@/hooks/use-live";
import { useSession } from "@/hooks/use-session";
import { useTaskActions } from "@/pages/tasks/task-actions";
import { escapeText } from "@/text/escape";
import { count, plural } from "@/text/number";

export const READ_AGAIN_MS = 15_000;

/** What failed, by the same exception at the same place. */
export function FailureGroups({ type }: { type: string }) {
  const { state } = useLive();
  const { data, error, refetch } = useQuery({
    ...failuresQuery(type),
    refetchInterval: state === "paused" ? false : READ_AGAIN_MS,
  });
  return (
    <Card flush title="Failures by error">
      {error && !data ? (
        <ErrorState error={error} onRetry={refetch} />
      ) : !data ? (
        <Loading />
      ) : data.groups.length === 0 ? (
        <EmptyState icon={CircleCheck} title="No failed tasks">
          Tasks that fail for good are put together here by exception and place.
        </EmptyState>
      ) : (
        <>
          <p className="border-b px-4 py-2 text-dim text-xs">
            {data.capped
              ? `The latest ${count(data.looked)} final failures; older ones are not counted.`
              : `${plural(data.looked, "final failure")}.`}
          </p>
          <ul aria-label="Failures by error" className="divide-y">
            {data.groups.map((group) => (
              <Group key={group.ids[0]} group={group} />
            ))}
          </ul>
        </>
      )}
    </Card>
  );
}

function Group({ group }: { group: FailureGroup }) {
  const { mayOperate } = useSession();
  const { actOnMany } = useTaskActions();
  const [latest] = group.ids;
  const name = group.error || "No exception";
  return (
    <li className="flex flex-wrap items-start justify-end gap-3 px-4 py-2.5 sm:flex-nowrap" data-failures={group.count}>
      <span
        title={plural(group.count, "task")}
        className="mt-px min-w-10 rounded-full bg-failed-soft px-2 text-center font-semibold text-failed text-xs leading-5"
      >
        {count(group.count)}
      </span>
      <div className="min-w-0 grow basis-56">
        <p className="flex flex-wrap items-baseline gap-x-2">
          <SafeText text={name} max={120} className="wrap-anywhere font-semibold" />
          {group.place && (
            <SafeText text={group.place} max={200} className="wrap-anywhere font-mono text-dim text-xs" />
          )}
        </p>
        <SafeText as="p" text={group.message} max={300} className="truncate font-mono text-dim text-xs" />
        <p className="text-dim text-xs">
          {latest && (
            <Link to="/tasks/$taskId" params={{ taskId: latest }} className="text-accent underline">
              Latest
            </Link>
          )}{" "}
          <RelativeTime at={group.latestAt} />
          {group.count > 1 && (
            <>
              , first <RelativeTime at={group.firstAt} />
            </>
          )}
        </p>
      </div>
      {mayOperate && (
        <Button
          size="small"
          icon={<RotateCw className="size-3.5" aria-hidden="true" />}
          aria-label={`Retry these ${group.count}: ${escapeText(name).slice(0, 60)}`}
          onClick={() =>
            actOnMany({
              action: "retry",
              filter: { ids: group.ids },
              search: [name, group.place].filter(Boolean).join(", "),
              size: group.count,
              onDone: () => {},
            })
          }
        >
          Retry these…
        </Button>
      )}
    </li>
  );
}
