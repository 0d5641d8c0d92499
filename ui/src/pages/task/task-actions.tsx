import { useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Ban, CopyPlus, FastForward, RotateCcw, Trash2, Undo2 } from "lucide-react";
import { useState } from "react";
import { cancelTask, deleteTask, retryTask, reviveTask, runTaskNow } from "@/api/actions";
import type { TaskDetail } from "@/api/model";
import { taskQuery } from "@/api/queries";
import { lastList } from "@/app/last-list";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";
import { obstacle } from "@/pages/tasks/allowed";

type Asking = "retry" | "cancel" | "remove" | "run-now" | "revive" | null;

const icon = "size-4";
const CUT_OFF = "Tasks that were cancelled because of its failure wait for it again.";
const NEEDED = "Tasks that need its result are cancelled with it.";

/** Retry, cancel, delete: each asks first, and says why where it is not allowed. The ways back show where there is one. */
export function TaskActions({ task }: { task: TaskDetail }) {
  const { mayOperate } = useSession();
  const [asking, setAsking] = useState<Asking>(null);
  const retry = useAction(retryTask, "dialog", () => "The task will be run again.");
  const cancel = useAction(cancelTask, "dialog", (after) =>
    after.status === "cancelled" ? "The task is cancelled." : "The task has been asked to stop.",
  );
  const runNow = useAction(runTaskNow, "dialog", () => "The task is due now.");
  const revive = useAction(reviveTask, "dialog", () => "The task waits again.");
  const remove = useRemoval();
  if (!mayOperate) return null;
  const reasons = {
    retry: obstacle("retry", task),
    cancel: obstacle("cancel", task),
    remove: obstacle("delete", task),
    revive: obstacle("revive", task),
  };
  const running = task.status === "processing";
  const waits = task.waitingFor.some(({ cause }) => cause === "scheduled" || cause === "retry");
  const dialog = (which: Asking) => ({
    open: asking === which,
    onOpenChange: (open: boolean) => setAsking(open ? which : null),
  });
  return (
    <>
      {waits && (
        <Button icon={<FastForward className={icon} aria-hidden="true" />} onClick={() => setAsking("run-now")}>
          Run now
        </Button>
      )}
      {task.status === "cancelled" && (
        <Button
          tone={reasons.revive ? "plain" : "accent"}
          icon={<Undo2 className={icon} aria-hidden="true" />}
          reason={reasons.revive}
          onClick={() => setAsking("revive")}
        >
          Revive
        </Button>
      )}
      {task.completedAt !== null && (
        <Link
          to="/new"
          search={{ copyOf: task.id }}
          className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-raised"
        >
          <CopyPlus className={icon} aria-hidden="true" />
          Run again…
        </Link>
      )}
      <Button
        tone={reasons.retry ? "plain" : "accent"}
        icon={<RotateCcw className={icon} aria-hidden="true" />}
        reason={reasons.retry}
        onClick={() => setAsking("retry")}
      >
        Retry
      </Button>
      <Button
        icon={<Ban className={icon} aria-hidden="true" />}
        reason={reasons.cancel}
        onClick={() => setAsking("cancel")}
      >
        Cancel
      </Button>
      <Button
        icon={<Trash2 className={icon} aria-hidden="true" />}
        reason={reasons.remove}
        onClick={() => setAsking("remove")}
      >
        Delete
      </Button>
      <ConfirmDialog
        {...dialog("retry")}
        title="Retry this task?"
        description={`It runs again as soon as a worker is free, with all its attempts anew. What it did before stays in its timeline.${task.feeds.total > 0 ? ` ${CUT_OFF}` : ""}`}
        confirm="Retry task"
        reason={reasons.retry}
        onConfirm={() => retry.mutateAsync(task.id)}
      />
      <ConfirmDialog
        {...dialog("run-now")}
        title="Run this task now?"
        description="It runs as soon as a worker is free, instead of at its time. Its attempts stay as they are."
        confirm="Run task now"
        onConfirm={() => runNow.mutateAsync(task.id)}
      />
      <ConfirmDialog
        {...dialog("revive")}
        title="Revive this task?"
        description="It was cancelled, and waits again: due when it was due before, with all its attempts."
        confirm="Revive task"
        onConfirm={() => revive.mutateAsync(task.id)}
      />
      <ConfirmDialog
        {...dialog("cancel")}
        title={running ? "Ask this task to stop?" : "Cancel this task?"}
        description={
          running
            ? "Its worker is told at once, and stops it. If it finishes first, it is completed."
            : `It will not run. A cancelled task can be revived.${task.feeds.total > 0 ? ` ${NEEDED}` : ""}`
        }
        confirm={running ? "Ask to stop" : "Cancel task"}
        danger
        reason={reasons.cancel}
        onConfirm={() => cancel.mutateAsync(task.id)}
      />
      <ConfirmDialog
        {...dialog("remove")}
        title="Delete this task?"
        description="Its payload, result, error and timeline are gone for good."
        confirm="Delete task"
        danger
        reason={reasons.remove}
        onConfirm={() => remove.mutateAsync(task.id)}
      />
    </>
  );
}

function useRemoval() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useAction(
    async (id: string) => {
      await deleteTask(id);
      // Before anything is read again: this page would say that the task is gone.
      await navigate({ to: "/tasks", search: lastList() });
      queries.removeQueries({ queryKey: taskQuery(id).queryKey });
    },
    "dialog",
    () => "The task is deleted.",
  );
}
