import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { setSchedule } from "@/api/actions";
import type { Schedule, ScheduleSet, ScheduleTimes } from "@/api/model";
import { previewQuery } from "@/api/queries";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { Field, Input, Select } from "@/components/field";
import { SafeText } from "@/components/safe-text";
import { Segmented } from "@/components/segmented";
import { useAction } from "@/hooks/use-action";
import { escapeText } from "@/text/escape";

type Kind = "cron" | "every";

const MISSED = { latest: "make up for the latest", all: "make up for each", none: "leave them out" } as const;
const OVERLAP = {
  allow: "start another beside it",
  skip: "leave this time out",
  wait: "keep one in reserve",
  replace: "keep the newest in reserve",
} as const;

/** The times of a schedule, with what they mean and when they are next. What it submits stays as it is. */
export function EditDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const [kind, setKind] = useState<Kind>(schedule.every == null ? "cron" : "every");
  const [cron, setCron] = useState(schedule.cron ?? "0 * * * *");
  const [timezone, setTimezone] = useState(schedule.timezone ?? "UTC");
  const [every, setEvery] = useState(String(schedule.every ?? 3600));
  const [missed, setMissed] = useState<keyof typeof MISSED>((schedule.missed ?? "latest") as keyof typeof MISSED);
  const [overlap, setOverlap] = useState<keyof typeof OVERLAP>((schedule.overlap ?? "allow") as keyof typeof OVERLAP);
  const times: ScheduleTimes = kind === "cron" ? { cron, timezone } : { every: Number(every) };
  const preview = useQuery(previewQuery(times));
  const name = escapeText(schedule.name).slice(0, 60);
  const save = useAction(
    () => {
      const kept = { late: schedule.late, jitter: schedule.jitter };
      return setSchedule(schedule.name, { ...times, ...kept, missed, overlap } as ScheduleSet);
    },
    "dialog",
    () => `${name} was saved.`,
  );
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Times of ${escapeText(schedule.name).slice(0, 80)}`}
      description={
        schedule.declared ? "This wins over what the code says, until it is taken back." : "It holds from now on."
      }
      confirm="Save"
      reason={preview.error ? "These times are refused; see below." : null}
      onConfirm={() => save.mutateAsync(undefined)}
    >
      <div className="space-y-3">
        <Segmented
          label="Kind of times"
          value={kind}
          options={[
            { value: "cron", label: "Cron" },
            { value: "every", label: "Interval" },
          ]}
          onChange={setKind}
        />
        {kind === "cron" ? (
          <div className="grid gap-3 sm:grid-cols-2">
            <Field label="Expression" hint="Minute, hour, day of month, month, day of week; or @daily.">
              <Input value={cron} spellCheck={false} onChange={(event) => setCron(event.target.value)} />
            </Field>
            <Field label="Time zone" hint="As Europe/Berlin.">
              <Input value={timezone} spellCheck={false} onChange={(event) => setTimezone(event.target.value)} />
            </Field>
          </div>
        ) : (
          <Field label="Seconds">
            <Input
              inputMode="numeric"
              value={every}
              className="w-32!"
              onChange={(event) => setEvery(event.target.value)}
            />
          </Field>
        )}
        <div className="grid gap-3 sm:grid-cols-2">
          <Field label="Times that nobody was up for">
            <Choice value={missed} choices={MISSED} onChange={setMissed} />
          </Field>
          <Field label="While an earlier one is not over">
            <Choice value={overlap} choices={OVERLAP} onChange={setOverlap} />
          </Field>
        </div>
        <div aria-live="polite" className="min-h-40 rounded-md bg-raised p-3 text-xs" data-preview>
          {preview.error ? (
            <p className="text-failed">
              <SafeText text={preview.error.message} max={500} />
            </p>
          ) : preview.data ? (
            <>
              <p className="font-medium">
                <SafeText text={preview.data.words} max={300} />
              </p>
              <ol className="mt-1 space-y-0.5 text-dim">
                {preview.data.times.map((at) => (
                  <li key={at}>{at.replace("T", " ")}</li>
                ))}
              </ol>
            </>
          ) : (
            <p className="text-dim">…</p>
          )}
        </div>
      </div>
    </ConfirmDialog>
  );
}

function Choice<Value extends string>(props: {
  value: Value;
  choices: Record<Value, string>;
  onChange: (value: Value) => void;
}) {
  return (
    <Select className="w-full" value={props.value} onChange={(event) => props.onChange(event.target.value as Value)}>
      {(Object.entries(props.choices) as [Value, string][]).map(([value, label]) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </Select>
  );
}
