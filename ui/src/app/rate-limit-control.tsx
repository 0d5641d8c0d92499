import { useQuery } from "@tanstack/react-query";
import { Gauge } from "lucide-react";
import { useState } from "react";
import { setRateLimit } from "@/api/actions";
import type { Controls } from "@/api/model";
import { controlsQuery } from "@/api/queries";
import { rateChoiceOf, rateFault, rateShown, rateToSend } from "@/app/rate-choice";
import { RateLimitField } from "@/app/rate-limit-field";
import { Button } from "@/components/button";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Tooltip } from "@/components/tooltip";
import { useAction } from "@/hooks/use-action";
import { useSession } from "@/hooks/use-session";

/** How many tasks the whole fleet starts a second. Who may not change it sees it where there is one. */
export function RateLimitControl() {
  const { data: controls } = useQuery(controlsQuery);
  const { mayOperate } = useSession();
  const [open, setOpen] = useState(false);
  if (!controls) return null;
  const limited = controls.rateLimit != null;
  const icon = <Gauge className="size-4" aria-hidden="true" />;
  if (!mayOperate) {
    if (!limited) return null;
    return (
      <Tooltip label="All types together start no more than this">
        <span
          data-rate-limit=""
          className="flex h-7 items-center gap-1.5 rounded-full bg-processing-soft px-2 font-medium text-processing text-xs"
        >
          {icon}
          {rateShown(controls).text}
        </span>
      </Tooltip>
    );
  }
  return (
    <>
      <Button
        tone="ghost"
        size="small"
        aria-label={limited ? `Rate limit: ${rateShown(controls).text}` : "Rate limit: none"}
        data-rate-limit=""
        icon={icon}
        onClick={() => setOpen(true)}
        className={limited ? "bg-processing-soft! text-processing!" : ""}
      >
        {limited ? rateShown(controls).text : <span className="max-lg:sr-only">Rate limit</span>}
      </Button>
      {open && <RateLimitDialog controls={controls} onClose={() => setOpen(false)} />}
    </>
  );
}

function RateLimitDialog({ controls, onClose }: { controls: Controls; onClose: () => void }) {
  const [choice, setChoice] = useState(() => rateChoiceOf(controls));
  const save = useAction(
    () => setRateLimit(rateToSend(choice)),
    "dialog",
    ({ tasksPerSecond }) =>
      tasksPerSecond === null
        ? "The rate limit is left to the code."
        : tasksPerSecond === 0
          ? "There is no rate limit for all types any more."
          : `All types together start at most ${tasksPerSecond} tasks a second.`,
  );
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title="Rate limit for all types"
      description="How many tasks the whole fleet starts a second, all types together. Limits of single types hold as well; they are on the page Types."
      confirm="Save"
      reason={rateFault(choice)}
      onConfirm={() => save.mutateAsync(undefined)}
    >
      <RateLimitField canLift control={controls} choice={choice} onChange={setChoice} />
    </ConfirmDialog>
  );
}
