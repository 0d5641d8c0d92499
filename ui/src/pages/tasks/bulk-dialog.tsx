import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { actOnMatching, countMatching } from "@/api/actions";
import type { BulkAction, BulkDone, BulkFilter } from "@/api/model";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { ErrorState } from "@/components/error-state";
import { SafeText } from "@/components/safe-text";
import { useAction } from "@/hooks/use-action";
import { NONE } from "@/pages/tasks/allowed";
import { count, plural } from "@/text/number";

export interface BulkRequest {
  action: BulkAction;
  filter: BulkFilter;
  /** The search, as people read it; null: the selected tasks. */
  search: string | null;
  /** How many are selected, or match; null: not counted to the end. */
  size: number | null;
  onDone: () => void;
  /** The question, and what happens, where there is more to say than of any tasks. */
  title?: string;
  what?: string;
}

const VERBS: Record<BulkAction, { verb: string; done: string; what: string }> = {
  retry: { verb: "Retry", done: "Retried", what: "They are due at once, with all their attempts." },
  cancel: { verb: "Cancel", done: "Cancelled", what: "Those that wait do not run; those that run are asked to stop." },
  delete: { verb: "Delete", done: "Deleted", what: "Their payloads, results and histories are gone then." },
  revive: {
    verb: "Revive",
    done: "Revived",
    what: "They wait again, due when they were due, with all their attempts.",
  },
  "run-now": { verb: "Run now", done: "Made due now", what: "They are due at once; their attempts stay as they are." },
};

/** Says how many there are before anything is done, then does it until nothing is left. */
export function BulkDialog({ request, onClose }: { request: BulkRequest; onClose: () => void }) {
  const { action, filter, search, size, onDone } = request;
  const { verb, done, what } = { ...VERBS[action], ...(request.what && { what: request.what }) };
  const [progress, setProgress] = useState<number | null>(null);
  const counted = useQuery({
    queryKey: ["bulk", action, filter],
    queryFn: () => countMatching(action, filter),
    enabled: progress === null, // what was confirmed stays on the screen while it is done
    staleTime: 0,
    gcTime: 0,
  });
  const perform = useAction(
    () => actOnMatching(action, filter, setProgress),
    "dialog",
    (result) => `${done} ${plural(result, "task")}.`,
  );
  const found = counted.isFetching && progress === null ? undefined : counted.data;

  async function confirm() {
    if (!found) return;
    setProgress(0);
    await perform.mutateAsync(undefined);
    onDone();
  }

  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={request.title ?? (search === null ? `${verb} the selected tasks?` : `${verb} all tasks that match?`)}
      description={
        <>
          {search !== null && <Scope search={search} />}
          <p aria-live="polite">{sayCount(action, found, size, counted.error)}</p>
          {found?.matchedCapped && SEARCHED.some((name) => filter[name]) && <p className="mt-1">{PARTLY_COUNTED}</p>}
          <p className="mt-1">{what}</p>
        </>
      }
      danger={action === "cancel" || action === "delete"}
      confirm={found ? `${verb} ${tasks(found)}` : verb}
      reason={
        counted.error ? "The tasks could not be counted." : !found ? "Counting…" : any(found) ? null : NONE[action]
      }
      onConfirm={confirm}
    >
      {counted.error ? <ErrorState error={counted.error} onRetry={counted.refetch} compact /> : null}
      {progress !== null && found && (
        <div role="status">
          <progress
            className="w-full accent-accent"
            max={Math.max(found.matched, progress)}
            value={progress}
            aria-label="Progress"
          />
          {count(progress)} of {tasks(found)}
        </div>
      )}
    </ConfirmDialog>
  );
}

function Scope({ search }: { search: string }) {
  if (search === "") return <p className="font-medium text-failed">There is no filter: this is the whole queue.</p>;
  return (
    <p className="mb-2 break-words rounded-md bg-raised px-2 py-1 font-mono text-xs">
      <SafeText text={search} max={400} />
    </p>
  );
}

const SEARCHED = [
  "words",
  "tags",
  "payload",
  "shortIds",
  "error",
  "endedAfter",
] as const satisfies (keyof BulkFilter)[];
const PARTLY_COUNTED =
  "Up to 20,000 of the newest tasks were searched for this number. The action goes on to the older ones that match.";

/** Whether there is, or may be, something to do. */
function any(found: BulkDone): boolean {
  return found.matched > 0 || found.matchedCapped;
}

function sayCount(action: BulkAction, found: BulkDone | undefined, size: number | null, error: unknown): string {
  if (error) return "";
  if (!found) return "Counting…";
  if (!any(found)) return NONE[action];
  if (found.matched === size || found.matchedCapped) return `This concerns ${tasks(found)}.`;
  const others = size === null ? "" : ` of ${count(size)}`;
  return `This concerns ${tasks(found)}${others}; the status of the others does not allow it.`;
}

function tasks(found: BulkDone): string {
  return found.matchedCapped ? `${count(found.matched)}+ tasks` : plural(found.matched, "task");
}
