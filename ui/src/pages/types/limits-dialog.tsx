import { useId, useState } from "react";
import { setType } from "@/api/actions";
import type { TaskType } from "@/api/model";
import { rateChoiceOf, rateFault, rateToSend } from "@/app/rate-choice";
import { RateLimitField } from "@/app/rate-limit-field";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Input } from "@/components/field";
import { SafeText } from "@/components/safe-text";
import { useAction } from "@/hooks/use-action";
import { concurrencyFault } from "@/pages/types/concurrency";
import { escapeText } from "@/text/escape";

/** Rate and concurrency of one type, in the whole fleet. Only what was changed is sent. */
export function LimitsDialog({ type, onClose }: { type: TaskType; onClose: () => void }) {
  const [before] = useState(type);
  const [rate, setRate] = useState(() => rateChoiceOf(type));
  const [concurrency, setConcurrency] = useState(type.concurrency == null ? "" : String(type.concurrency));
  const id = useId();
  const fault = concurrencyFault(concurrency);
  const save = useAction(
    () => {
      const rateLimit = rateToSend(rate);
      const atOnce = concurrency.trim() === "" ? null : Number(concurrency);
      return setType(type.type, {
        ...(rateLimit === (before.operatorRateLimit ?? null) ? {} : { rateLimit }),
        ...(atOnce === (before.concurrency ?? null) ? {} : { concurrency: atOnce }),
      });
    },
    "dialog",
    () => `Limits of ${escapeText(type.type).slice(0, 60)} saved.`,
  );
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Limits of ${escapeText(type.type).slice(0, 80)}`}
      description="They hold for all workers together, from the next task on."
      confirm="Save"
      reason={rateFault(rate) ?? fault}
      onConfirm={() => save.mutateAsync(undefined)}
    >
      <RateLimitField control={before} canLift={false} choice={rate} onChange={setRate} />
      <div className="mt-4">
        <label htmlFor={id} className="mb-1 block font-medium">
          Running at once
        </label>
        <Input
          id={id}
          inputMode="numeric"
          placeholder="no limit"
          value={concurrency}
          aria-invalid={fault !== null}
          aria-describedby={`${id}-hint`}
          onChange={(event) => setConcurrency(event.target.value)}
          className="w-32!"
        />
        <p id={`${id}-hint`} className={fault ? "mt-1 text-failed text-xs" : "mt-1 text-dim text-xs"}>
          {fault ?? (
            <>
              How many tasks of <SafeText text={type.type} max={60} /> may run at the same time. Empty is no limit.
            </>
          )}
        </p>
      </div>
    </ConfirmDialog>
  );
}
