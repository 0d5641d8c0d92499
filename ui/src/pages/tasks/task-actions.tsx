import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { cancelTask, deleteTask, retryTask, reviveTask, runTaskNow } from "@/api/actions";
import type { BulkAction, Task } from "@/api/model";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { SafeText } from "@/components/safe-text";
import { useAction } from "@/hooks/use-action";
import { BulkDialog, type BulkRequest } from "@/pages/tasks/bulk-dialog";
import { shortId } from "@/pages/tasks/cells";

interface TaskActions {
  /** To one task: what can be undone is done at once, the others are asked first. */
  act: (action: BulkAction, task: Task) => void;
  /** To several: always counted and asked first. */
  actOnMany: (request: BulkRequest) => void;
}

const TaskActionsContext = createContext<TaskActions | null>(null);

export function useTaskActions(): TaskActions {
  const actions = useContext(TaskActionsContext);
  if (!actions) throw new Error("useTaskActions needs a TaskActionsProvider above it");
  return actions;
}

interface Single {
  action: "cancel" | "delete";
  task: Task;
}

/** Holds the dialogs, once for all rows. */
export function TaskActionsProvider({ children }: { children: ReactNode }) {
  const [single, setSingle] = useState<Single | null>(null);
  const [open, setOpen] = useState(false);
  const [many, setMany] = useState<BulkRequest | null>(null);
  const { mutate: retry } = useAction(retryTask, "toast", (_, id) => `Task ${shortId(id)} is due again.`);
  const { mutate: revive } = useAction(reviveTask, "toast", (_, id) => `Task ${shortId(id)} waits again.`);
  const { mutate: runNow } = useAction(runTaskNow, "toast", (_, id) => `Task ${shortId(id)} is due now.`);

  const act = useCallback(
    (action: BulkAction, task: Task) => {
      if (action === "retry") return retry(task.id);
      if (action === "revive") return revive(task.id);
      if (action === "run-now") return runNow(task.id);
      setSingle({ action, task });
      setOpen(true);
    },
    [retry, revive, runNow],
  );
  const value = useMemo(() => ({ act, actOnMany: setMany }), [act]);

  return (
    <TaskActionsContext value={value}>
      {children}
      {single && <SingleDialog {...single} open={open} onOpenChange={setOpen} />}
      {many && <BulkDialog request={many} onClose={() => setMany(null)} />}
    </TaskActionsContext>
  );
}

interface SingleDialogProps extends Single {
  open: boolean;
  onOpenChange: (open: boolean) => void;
}

function SingleDialog({ action, task, open, onOpenChange }: SingleDialogProps) {
  const cancel = useAction(cancelTask, "dialog", (now) =>
    now.status === "cancelled" ? `Task ${shortId(now.id)} is cancelled.` : `Task ${shortId(now.id)} is asked to stop.`,
  );
  const remove = useAction(deleteTask, "dialog", (_, id) => `Task ${shortId(id)} is deleted.`);
  const deletes = action === "delete";
  return (
    <ConfirmDialog
      open={open}
      onOpenChange={onOpenChange}
      title={deletes ? "Delete this task?" : "Cancel this task?"}
      description={
        <>
          <SafeText text={task.type} max={120} className="break-words font-medium text-text" />{" "}
          <span className="font-mono text-xs">{task.id}</span>
          <br />
          {deletes ? "Its payload, result and history are gone then." : CANCELS[task.status === "processing" ? 1 : 0]}
        </>
      }
      danger
      confirm={deletes ? "Delete task" : "Cancel task"}
      onConfirm={() => (deletes ? remove : cancel).mutateAsync(task.id)}
    />
  );
}

const CANCELS = ["It does not run then.", "It runs: its worker is asked to stop it."];
