import { useQuery } from "@tanstack/react-query";
import { CirclePause, CirclePlay } from "lucide-react";
import { useState } from "react";
import { pauseAll, resumeAll } from "@/api/actions";
import { controlsQuery } from "@/api/queries";
import { PausedBy } from "@/app/paused-by";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";

/** Stops the whole fleet from starting tasks, after a word of warning. */
export function PauseControl() {
  const { data: controls } = useQuery(controlsQuery);
  const { mayOperate } = useSession();
  const [asking, setAsking] = useState(false);
  const pause = useAction(pauseAll, "dialog", () => "All task types are paused.");
  if (!controls || controls.paused || !mayOperate) return null;
  return (
    <>
      <Button
        tone="ghost"
        size="small"
        aria-label="Pause all"
        icon={<CirclePause className="size-4" aria-hidden="true" />}
        onClick={() => setAsking(true)}
      >
        <span className="max-lg:sr-only">Pause all</span>
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title="Pause all task types?"
        description="No worker starts another task until you resume. Tasks that run go on to their end."
        confirm="Pause all"
        onConfirm={() => pause.mutateAsync(undefined)}
      />
    </>
  );
}

export function PauseBanner() {
  const { data: controls } = useQuery(controlsQuery);
  const { mayOperate } = useSession();
  const resume = useAction(resumeAll, "toast", () => "Workers start tasks again.");
  if (!controls?.paused) return null;
  return (
    <div
      role="status"
      className="flex flex-wrap items-center gap-3 border-b bg-processing-soft px-3 py-2 text-processing md:px-6"
    >
      <CirclePause className="size-4" aria-hidden="true" />
      <span className="grow basis-48">
        <span className="font-medium">All task types are paused: no worker starts a task.</span>{" "}
        {controls.pausedAt && <span className="text-xs">Paused </span>}
        <PausedBy control={controls} />
      </span>
      {mayOperate && (
        <Button
          size="small"
          icon={<CirclePlay className="size-4" aria-hidden="true" />}
          disabled={resume.isPending}
          onClick={() => resume.mutate(undefined)}
        >
          Resume all
        </Button>
      )}
    </div>
  );
}
