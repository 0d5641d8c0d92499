import { ChevronRight } from "lucide-react";
import { type ReactNode, useEffect, useId, useRef } from "react";
import { BASE } from "@/api/place";
import { classes } from "@/components/classes";
import { CopyButton } from "@/components/copy-button";
import {
  type Answer,
  type ApiDocument,
  answersOf,
  bodyOf,
  type Endpoint,
  modelOf,
  refusalsOf,
  type Schema,
} from "@/pages/api-docs/document";
import { Fields, Model } from "@/pages/api-docs/fields";
import { Prose, Words } from "@/pages/api-docs/prose";
import { curlOf, typeOf } from "@/pages/api-docs/words";

const TONES: Record<string, string> = {
  GET: "bg-pending-soft text-pending",
  POST: "bg-completed-soft text-completed",
  PUT: "bg-processing-soft text-processing",
  PATCH: "bg-processing-soft text-processing",
  DELETE: "bg-failed-soft text-failed",
};

export interface EndpointItemProps {
  document: ApiDocument;
  endpoint: Endpoint;
  open: boolean;
  onToggle: (id: string) => void;
}

/** One line, which opens to all that there is to know. */
export function EndpointItem({ document, endpoint, open, onToggle }: EndpointItemProps) {
  const { id, method, path, operation } = endpoint;
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  const panel = useId();
  useEffect(() => {
    if (open && !wasOpen.current && document.paths[path]) button.current?.scrollIntoView({ block: "nearest" });
    wasOpen.current = open;
  }, [open, document, path]);
  return (
    <li id={id}>
      <h3>
        <button
          ref={button}
          type="button"
          aria-expanded={open}
          aria-controls={panel}
          onClick={() => onToggle(id)}
          className="grid w-full grid-cols-[auto_4rem_minmax(0,1fr)] items-center gap-x-2 px-3 py-2 text-left hover:bg-raised/60 md:px-4"
        >
          <ChevronRight
            className={classes("size-4 shrink-0 text-dim transition-transform", open && "rotate-90")}
            aria-hidden="true"
          />
          <span
            className={classes(
              "rounded px-1.5 py-0.5 text-center font-mono font-semibold text-2xs",
              TONES[method] ?? "bg-raised",
            )}
          >
            {method}
          </span>
          <span className="min-w-0 lg:flex lg:items-baseline lg:gap-3">
            <code className="break-words font-mono text-xs">{path}</code>
            <span className="block font-normal text-dim sm:truncate">
              <Words text={firstSentence(operation.description)} />
            </span>
          </span>
        </button>
      </h3>
      {open && (
        <div id={panel} className="space-y-4 border-t bg-ground/60 px-3 py-4 md:px-4">
          <Details document={document} endpoint={endpoint} />
        </div>
      )}
    </li>
  );
}

function Details({ document, endpoint }: { document: ApiDocument; endpoint: Endpoint }) {
  const { operation } = endpoint;
  const parameters = operation.parameters ?? [];
  const body = bodyOf(operation);
  const asked = body && modelOf(document, body);
  return (
    <>
      <div className="max-w-prose">
        <Prose text={operation.description ?? ""} />
      </div>
      {parameters.length > 0 && (
        <Part title="Parameters">
          <Fields
            document={document}
            rows={parameters.map(({ name, schema, required, description, ...rest }) => ({
              name,
              schema: withoutNull(schema),
              required: required ?? false,
              place: rest.in,
              description,
            }))}
          />
        </Part>
      )}
      {body && (
        <Part title={`Body: ${typeOf(document, body)}`}>
          {asked && <Model document={document} schema={asked.schema} sent />}
        </Part>
      )}
      <Part title="Example">
        <Example text={curlOf(document, endpoint, BASE.href)} />
      </Part>
      {answersOf(operation).map((answer) => (
        <AnswerPart key={answer.status} document={document} answer={answer} />
      ))}
      <Part title="Or a problem">
        <ul className="flex flex-wrap gap-x-4 gap-y-1 text-dim">
          {refusalsOf(operation).map(({ status, text }) => (
            <li key={status}>
              <span className="font-mono text-xs">{status}</span> {text}
            </li>
          ))}
        </ul>
      </Part>
    </>
  );
}

function AnswerPart({ document, answer }: { document: ApiDocument; answer: Answer }) {
  const { status, kind, schema } = answer;
  const model = schema && modelOf(document, schema);
  const what = schema && kind === "application/json" ? typeOf(document, schema) : (kind ?? "nothing");
  return (
    <Part title={`Answer: ${status}, ${what}`}>{model && <Model document={document} schema={model.schema} />}</Part>
  );
}

/** A parameter that is not given is not there: nobody can write null in an address. */
function withoutNull(schema: Schema): Schema {
  const choices = schema.anyOf?.filter(({ type }) => type !== "null");
  return choices ? { ...schema, anyOf: choices } : schema;
}

function Part({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <section>
      <h4 className="mb-1.5 font-semibold">{title}</h4>
      {children}
    </section>
  );
}

function Example({ text }: { text: string }) {
  return (
    <div className="flex items-start gap-2 rounded-md border bg-raised py-1 pr-1 pl-3">
      <pre className="min-w-0 grow whitespace-pre-wrap break-all py-1 font-mono text-xs leading-5">{text}</pre>
      <CopyButton text={text} label="Copy example" />
    </div>
  );
}

function firstSentence(text = ""): string {
  return text.replace(/\s+/g, " ").split(/(?<=\.) /)[0] ?? "";
}
