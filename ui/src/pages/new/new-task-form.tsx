import { useNavigate } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { type FormEvent, useState } from "react";
import { copyTask, submitTask } from "@/api/actions";
import { ApiError } from "@/api/errors";
import { stringify } from "@/api/exact";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { ErrorState } from "@/components/error-state";
import { Field, Input, TextArea } from "@/components/field";
import { MomentInput } from "@/components/moment";
import { Segmented } from "@/components/segmented";
import { useAction } from "@/hooks/use-action";
import { ArgumentField } from "@/pages/new/argument-field";
import { argumentsOf, draftOf, payloadOf, readJson } from "@/pages/new/arguments";

export interface NewTaskFormProps {
  type: string;
  /** Of the arguments; null: nobody has told. */
  schema: unknown;
  /** The task that is run again. */
  copyOf: string | null;
  payload: unknown;
}

type Mode = "form" | "json";

export function NewTaskForm({ type, schema, copyOf, payload: given }: NewTaskFormProps) {
  const fields = argumentsOf(schema);
  const filled = fields && draftOf(given, fields);
  const [mode, setMode] = useState<Mode>(filled ? "form" : "json");
  const [draft, setDraft] = useState(filled ?? {});
  const [json, setJson] = useState(() => stringify(given));
  const [priority, setPriority] = useState("");
  const [runAfter, setRunAfter] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const navigate = useNavigate();
  const send = useAction(
    async (payload: unknown) => {
      const options = { ...(priority.trim() && { priority: Number(priority) }), ...(runAfter && { runAfter }) };
      const unchanged = stringify(payload, 0) === stringify(given, 0);
      const made = copyOf
        ? await copyTask(copyOf, unchanged ? {} : { payload })
        : await submitTask({ type, payload, options });
      await navigate({ to: "/tasks/$taskId", params: { taskId: made.id } });
    },
    "dialog",
    () => "The task is submitted.",
  );
  const { payload, faults } = read(mode, draft, json, fields);
  const field = send.error instanceof ApiError ? send.error.field : null;

  function change(to: Mode) {
    if (to === "json") setJson(stringify(payload));
    const back = to === "form" && fields && !faults[""] ? draftOf(payload, fields) : {};
    if (back === null) return; // there is more in it than the form has fields for
    if (to === "form") setDraft(back);
    setMode(to);
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (Object.keys(faults).length === 0) send.mutate(payload);
  }

  return (
    <form onSubmit={submit} noValidate className="max-w-2xl space-y-4">
      <Card
        title="Arguments"
        actions={
          fields && (
            <Segmented
              label="How to write them"
              value={mode}
              options={[
                { value: "form", label: "Form" },
                { value: "json", label: "JSON" },
              ]}
              onChange={change}
            />
          )
        }
      >
        {mode === "form" && fields ? (
          <div className="space-y-4">
            {fields.length === 0 && <p className="text-dim">It takes none.</p>}
            {fields.map((each) => (
              <ArgumentField
                key={each.name}
                argument={each}
                text={draft[each.name] ?? ""}
                error={
                  (tried ? faults[each.name] : undefined) ??
                  (field === `payload.${each.name}` ? send.error?.message : undefined)
                }
                onChange={(text) => setDraft({ ...draft, [each.name]: text })}
              />
            ))}
          </div>
        ) : (
          <Field
            label="Payload as JSON"
            hint={fields ? null : "Nobody has told what this type takes: the payload is not checked."}
            error={tried ? faults[""] : null}
          >
            <TextArea
              rows={Math.min(20, Math.max(6, json.split("\n").length + 1))}
              value={json}
              onChange={({ target }) => setJson(target.value)}
            />
          </Field>
        )}
        {stringify(given, 0).includes("***") && (
          <p className="mt-3 text-dim text-xs">
            What is hidden as *** is taken over from the task, where you leave it as it is.
          </p>
        )}
      </Card>
      {!copyOf && (
        <Card title="When">
          <div className="flex flex-wrap items-start gap-x-6 gap-y-3">
            <Field label="Not before" hint="At once unless given.">
              <MomentInput at={runAfter} onChange={setRunAfter} />
            </Field>
            <Field label="Priority" hint="Higher goes first; the type's own unless given.">
              <Input
                inputMode="numeric"
                className="w-32!"
                value={priority}
                onChange={({ target }) => setPriority(target.value)}
              />
            </Field>
          </div>
        </Card>
      )}
      {send.error && <ErrorState error={send.error} compact />}
      <Button
        type="submit"
        tone="accent"
        icon={<Play className="size-4" aria-hidden="true" />}
        disabled={send.isPending}
        reason={Number.isInteger(Number(priority)) ? null : "The priority is a whole number."}
      >
        {send.isPending ? "Working…" : copyOf ? "Run again" : "Submit task"}
      </Button>
    </form>
  );
}

function read(mode: Mode, draft: Record<string, string>, json: string, fields: ReturnType<typeof argumentsOf>) {
  if (mode === "form" && fields) return payloadOf(draft, fields);
  try {
    return { payload: readJson(json), faults: {} as Record<string, string> };
  } catch (error) {
    return { payload: null, faults: { "": error instanceof Error ? error.message : String(error) } };
  }
}
