import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FileX2 } from "lucide-react";
import { auditQuery } from "@/api/queries";
import { lastList } from "@/app/last-list";
import { Card } from "@/components/card";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";
import { SafeText } from "@/components/safe-text";
import { RelativeTime } from "@/components/times";
import { BackToList } from "@/pages/task/list-link";
import { isId } from "@/pages/tasks/search/filter";

const MAYBE = {
  gone: "It may have been deleted, or cleaned up by age.",
  misspelt:
    "IDs have 36 characters, such as 0198f2c4-7d6e-7c35-8b2f-0c1a5f3e9d10. Check the address, or search for the task.",
};

/** There is no such task, or no longer; the audit trail may know who deleted it. */
export function Gone({ taskId }: { taskId: string }) {
  const { data } = useQuery({ ...auditQuery({ taskId }), enabled: isId(taskId) });
  const deleted = data?.entries.find(({ action }) => action === "delete");
  return (
    <>
      <BackToList />
      <PageHeader title="No such task">
        <SafeText text={taskId} max={100} className="break-all font-mono text-xs" />
      </PageHeader>
      <Card>
        <div role="alert">
          <EmptyState
            icon={FileX2}
            title={deleted ? "This task was deleted" : "There is no task with this ID"}
            actions={
              <Link to="/tasks" search={lastList()} className="font-medium text-accent underline">
                Back to the tasks
              </Link>
            }
          >
            {deleted ? (
              <>
                <SafeText text={deleted.actor} max={80} className="font-medium text-text" /> deleted it{" "}
                <RelativeTime at={deleted.at} />
                {deleted.type && (
                  <>
                    . It was of the type <SafeText text={deleted.type} max={80} className="font-medium text-text" />
                  </>
                )}
                .
              </>
            ) : (
              MAYBE[isId(taskId) ? "gone" : "misspelt"]
            )}
          </EmptyState>
        </div>
      </Card>
    </>
  );
}
