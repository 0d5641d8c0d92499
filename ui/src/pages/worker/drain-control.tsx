import { CirclePower } from "lucide-react";
import { useState } from "react";
import { drainWorker } from "@/api/actions";
import type { Worker } from "@/api/model";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";

/** Asks the worker to end in order, after a word of warning. */
export function DrainControl({ worker }: { worker: Worker }) {
  const { mayOperate } = useSession();
  const [asking, setAsking] = useState(false);
  const drain = useAction(drainWorker, "dialog", () => "The worker has been asked to drain.");
  if (!mayOperate) return null;
  const reason = obstacle(worker);
  return (
    <>
      <Button
        icon={<CirclePower className="size-4" aria-hidden="true" />}
        reason={reason}
        onClick={() => setAsking(true)}
      >
        Drain
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Drain this worker?"
        description="It takes no more tasks, finishes what it runs within its grace period, and ends. It does not start again by itself; what starts it may."
        confirm="Drain worker"
        danger
        reason={reason}
        onConfirm={() => drain.mutateAsync(worker.id)}
      />
    </>
  );
}

function obstacle(worker: Worker): string | null {
  if (worker.state === "stopped") return "It has stopped.";
  if (worker.drainRequestedAt !== null) return "It has been asked to.";
  return worker.state === "stopping" ? "It is stopping." : null;
}
