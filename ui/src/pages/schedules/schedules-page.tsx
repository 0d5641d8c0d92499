import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { CalendarClock } from "lucide-react";
import { useState } from "react";
import type { Schedule } from "@/api/model";
import { schedulesQuery } from "@/api/queries";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { ErrorState } from "@/components/error-state";
import { Loading } from "@/components/loading";
import { PageHeader } from "@/components/page-header";
import { useSession } from "@/hooks/use-session";
import { DeleteDialog } from "@/pages/schedules/delete-dialog";
import { EditDialog } from "@/pages/schedules/edit-dialog";
import { isFailing } from "@/pages/schedules/runs";
import { ScheduleItem } from "@/pages/schedules/schedule-item";
import { count, plural } from "@/text/number";

const route = getRouteApi("/schedules");

export function SchedulesPage() {
  const { cursor } = route.useSearch();
  const { data, error, refetch } = useQuery(schedulesQuery(cursor));
  const { mayOperate, maySubmit } = useSession();
  const [edited, setEdited] = useState<Schedule | null>(null);
  const [deleted, setDeleted] = useState<Schedule | null>(null);
  const shown = data?.schedules ?? [];
  const failing = shown.filter(isFailing).length;
  return (
    <>
      <PageHeader title="Schedules">
        {data && <span>{plural(data.total, "schedule")}</span>}
        {failing > 0 && <span className="text-failed"> · the last run of {count(failing)} failed</span>}
      </PageHeader>
      <Card flush>
        {error && !data ? (
          <ErrorState error={error} onRetry={refetch} />
        ) : !data ? (
          <Loading />
        ) : shown.length === 0 ? (
          <EmptyState icon={CalendarClock} title="Nothing is scheduled" command="tasklib schedule add --help">
            A schedule submits a task again and again. Code says so with @task(schedule=cron(…)), or somebody adds one.
          </EmptyState>
        ) : (
          <ul aria-label="Schedules" className="divide-y">
            {shown.map((schedule) => (
              <ScheduleItem
                key={schedule.name}
                schedule={schedule}
                mayOperate={mayOperate}
                maySubmit={maySubmit}
                onEdit={setEdited}
                onDelete={setDeleted}
              />
            ))}
          </ul>
        )}
      </Card>
      {(cursor || data?.nextCursor) && (
        <nav aria-label="More schedules" className="mt-3 flex justify-between">
          {cursor ? (
            <Link to="/schedules" search={{}} className="text-accent hover:underline">
              First page
            </Link>
          ) : (
            <span />
          )}
          {data?.nextCursor && (
            <Link to="/schedules" search={{ cursor: data.nextCursor }} className="text-accent hover:underline">
              Next page
            </Link>
          )}
        </nav>
      )}
      {edited && <EditDialog schedule={edited} onClose={() => setEdited(null)} />}
      {deleted && <DeleteDialog schedule={deleted} onClose={() => setDeleted(null)} />}
    </>
  );
}
