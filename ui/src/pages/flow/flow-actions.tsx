import { Ban, RotateCcw } from "lucide-react";
import type { BulkAction, FlowDetail } from "@/api/model";
import { Button } from "@/components/button";
import { useSession } from "@/hooks/use-session";
import { useTaskActions } from "@/pages/tasks/task-actions";

const icon = "size-4";

/** Of what failed, or of what is left: both are counted and asked about first. */
export function FlowActions({ flow }: { flow: FlowDetail }) {
  const { mayOperate } = useSession();
  const { actOnMany } = useTaskActions();
  if (!mayOperate) return null;
  const { failed, retrying, pending, waiting, processing } = flow.counts;
  const ask = (action: BulkAction, size: number, title: string, what: string) =>
    actOnMany({
      action,
      title,
      what,
      filter: { flow: flow.id },
      search: flow.name ?? flow.id,
      size,
      onDone() {},
    });
  return (
    <>
      <Button
        tone={failed > 0 ? "accent" : "plain"}
        icon={<RotateCcw className={icon} aria-hidden="true" />}
        reason={failed + retrying > 0 ? null : "None of its tasks has failed."}
        onClick={() =>
          ask(
            "retry",
            failed + retrying,
            "Retry what failed in this flow?",
            "The failed tasks are due at once, with all their attempts. What was cancelled because of them waits for them again.",
          )
        }
      >
        Retry the flow…
      </Button>
      <Button
        icon={<Ban className={icon} aria-hidden="true" />}
        reason={flow.status === "running" ? null : "All its tasks are over."}
        onClick={() =>
          ask(
            "cancel",
            pending + waiting + processing + retrying,
            "Cancel what is left of this flow?",
            "Those that wait do not run; those that run are asked to stop. What is completed stays.",
          )
        }
      >
        Cancel the flow…
      </Button>
    </>
  );
}
