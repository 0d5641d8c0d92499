import { type ReactNode, useState } from "react";
import { Button } from "@/components/button";
import { Dialog } from "@/components/dialog";
import { ErrorState } from "@/components/error-state";

export interface ConfirmDialogProps {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  /** What will happen, with the count. */
  description: ReactNode;
  /** The verb: "Delete 12 tasks". */
  confirm: string;
  danger?: boolean;
  /** Why it cannot be confirmed yet. */
  reason?: string | null;
  /** The dialog stays open until it is done, and shows why it failed. */
  onConfirm: () => Promise<unknown>;
  children?: ReactNode;
}

export function ConfirmDialog({
  confirm,
  danger,
  reason,
  onConfirm,
  onOpenChange,
  children,
  ...rest
}: ConfirmDialogProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);

  async function run() {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onOpenChange(false);
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  }

  function change(open: boolean) {
    if (busy) return;
    setError(null);
    onOpenChange(open);
  }

  return (
    <Dialog
      {...rest}
      onOpenChange={change}
      footer={
        <>
          <Button onClick={() => change(false)} disabled={busy}>
            Keep as it is
          </Button>
          <Button tone={danger ? "danger" : "accent"} onClick={run} disabled={busy} reason={reason}>
            {busy ? "Working…" : confirm}
          </Button>
        </>
      }
    >
      {children}
      {error !== null && <ErrorState error={error} compact />}
    </Dialog>
  );
}
