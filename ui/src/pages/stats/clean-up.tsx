import { useQuery } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useEffect, useState } from "react";
import { cleanUp } from "@/api/actions";
import { now } from "@/api/clock";
import type { CleanUpQuery } from "@/api/model";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";
import { type CleanUpChoice, cleanUpQuery, faultOf } from "@/pages/stats/clean-up-choice";
import { CleanUpForm } from "@/pages/stats/clean-up-form";
import { count, plural } from "@/text/number";

const FIRST: CleanUpChoice = { age: "30", unit: "days", statuses: ["completed"] };
const TYPING_MS = 300;

/** Deletes finished tasks by age: counted first, then confirmed. */
export function CleanUp() {
  const { mayOperate } = useSession();
  const [open, setOpen] = useState(false);
  if (!mayOperate) return null;
  return (
    <>
      <Button icon={<Trash2 className="size-4" aria-hidden="true" />} onClick={() => setOpen(true)}>
        Clean up…
      </Button>
      {open && <CleanUpDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function CleanUpDialog({ onClose }: { onClose: () => void }) {
  const [choice, setChoice] = useState(FIRST);
  const [deleted, setDeleted] = useState<number | null>(null);
  const query = useSettled(choice);
  const counted = useQuery({
    queryKey: ["clean-up", query],
    queryFn: () => cleanUp({ ...(query as CleanUpQuery), dryRun: true }),
    enabled: query !== null && deleted === null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const matched = query === null || counted.isFetching ? null : (counted.data?.matched ?? null);
  const remove = useAction(
    () => deleteAll(query as CleanUpQuery, setDeleted),
    "dialog",
    (total) => `${plural(total, "task")} deleted.`,
  );
  const fault = faultOf(choice);

  return (
    <ConfirmDialog
      open
      danger
      onOpenChange={onClose}
      title="Clean up finished tasks"
      description="Deletes tasks for good, with their payloads, results and errors. Tasks that wait or run are never touched."
      confirm={matched ? `Delete ${plural(matched, "task")}` : "Delete"}
      reason={
        fault ??
        (counted.error
          ? "They could not be counted."
          : matched === null
            ? "Counting…"
            : matched === 0
              ? "There is nothing to delete."
              : null)
      }
      onConfirm={() => remove.mutateAsync(undefined)}
    >
      <CleanUpForm choice={choice} onChange={setChoice} disabled={deleted !== null} />
      <div role="status" className="mt-4 rounded-md bg-raised px-3 py-2">
        {deleted !== null ? (
          <>
            <p>
              {count(deleted)} of {count(Math.max(deleted, matched ?? 0))} deleted…
            </p>
            <progress
              aria-label="Deleted"
              className="mt-1 h-1.5 w-full accent-accent"
              value={deleted}
              max={Math.max(1, deleted, matched ?? 0)}
            />
          </>
        ) : (
          <p data-matched={matched ?? ""}>
            {fault ??
              (matched === null
                ? "Counting…"
                : matched === 0
                  ? "No task matches."
                  : `${plural(matched, "task")} will be deleted.`)}
          </p>
        )}
      </div>
      {counted.error && <ErrorState error={counted.error} onRetry={counted.refetch} compact />}
    </ConfirmDialog>
  );
}

/** The server works for a while at a time, so it is asked until nothing is left. */
async function deleteAll(query: CleanUpQuery, progress: (deleted: number) => void): Promise<number> {
  let deleted = 0;
  progress(0);
  let bulkId: string | null = null;
  for (;;) {
    const part = await cleanUp(bulkId ? { ...query, bulkId } : query);
    bulkId = part.bulkId;
    deleted += part.deleted;
    progress(deleted);
    if (!part.more) return deleted;
  }
}

/** What to count, once the choice has been left alone for a moment. Null until then. */
function useSettled(choice: CleanUpChoice): CleanUpQuery | null {
  const [settled, setSettled] = useState<{ choice: CleanUpChoice; query: CleanUpQuery } | null>(null);
  useEffect(() => {
    if (faultOf(choice)) return;
    const timer = setTimeout(() => setSettled({ choice, query: cleanUpQuery(choice, now()) }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [choice]);
  return settled?.choice === choice ? settled.query : null;
}
