import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { cancelTask, deleteTask, retryTask } from "@/api/actions";
import type { TaskDetail } from "@/api/model";
import { taskQuery } from "@/api/queries";
import { lastList } from "@/app/last-list";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";
import { obstacle } from "@/pages/tasks/allowed";

type Asking = "retry" | "cancel" | "remove" | null;

const icon = "size-4";

/** Retry, cancel, delete: each asks first, and says why where it is not allowed. */
export function TaskActions({ task }: { task: TaskDetail }) {
  const { mayOperate } = useSession();
  const [asking, setAsking] = useState<Asking>(null);
  const retry = useAction(retryTask, "dialog", () => "The task will be run again.");
  const cancel = useAction(cancelTask, "dialog", (after) =>
    after.status === "cancelled" ? "The task is cancelled." : "The task has been asked to stop.",
  );
  const remove = useRemoval();
  if (!mayOperate) return null;
  const reasons = {
    retry: obstacle("retry", task),
    cancel: obstacle("cancel", task),
    remove: obstacle("delete", task),
  };
  const running = task.status === "processing";
  const dialog = (which: Asking) => ({
    open: asking === which,
    onOpenChange: (open: boolean) => setAsking(open ? which : null),
  });
  return (
    <>
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
        description="It runs again as soon as a worker is free, with all its attempts anew. What it did before stays in its timeline."
        confirm="Retry task"
        reason={reasons.retry}
        onConfirm={() => retry.mutateAsync(task.id)}
      />
      <ConfirmDialog
        {...dialog("cancel")}
        title={running ? "Ask this task to stop?" : "Cancel this task?"}
        description={
          running
            ? "Its worker is told at once, and stops it. If it finishes first, it is completed."
            : "It will not run. A cancelled task cannot be retried."
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
