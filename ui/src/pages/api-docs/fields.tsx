import { ChevronRight } from "lucide-react";
import { type ReactNode, useState } from "react";
import { type ApiDocument, modelOf, type Schema } from "@/pages/api-docs/document";
import { Prose } from "@/pages/api-docs/prose";
import { limitsOf, typeOf } from "@/pages/api-docs/words";

export interface FieldRow {
  name: string;
  schema: Schema;
  required?: boolean;
  /** Where a parameter goes: path, query. */
  place?: string;
  description?: string | undefined;
}

export interface FieldsProps {
  document: ApiDocument;
  rows: readonly FieldRow[];
  sent?: boolean;
}

/** Names, types, limits and meanings, one below the other. */
export function Fields({ document, rows, sent = false }: FieldsProps) {
  return (
    <dl className="divide-y rounded-md border">
      {rows.map(({ name, schema, required, place, description }) => {
        const limits = limitsOf(document, schema);
        return (
          <div
            key={`${place} ${name}`}
            className="gap-3 px-3 py-2 sm:grid sm:grid-cols-[minmax(0,14rem)_minmax(0,1fr)]"
          >
            <dt className="min-w-0">
              <code className="break-words font-medium font-mono text-xs">{name}</code>
              {required && <span className="ml-2 text-failed text-xs">required</span>}
              {place && <span className="ml-2 text-dim text-xs">{place}</span>}
            </dt>
            <dd className="min-w-0">
              <span className="break-words font-mono text-dim text-xs">{typeOf(document, schema)}</span>
              {limits && <span className="ml-2 break-words text-dim text-xs">{limits}</span>}
              <Prose text={description ?? schema.description ?? ""} />
              <Nested document={document} schema={schema} sent={sent} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

export interface ModelProps {
  document: ApiDocument;
  schema: Schema;
  /** Somebody has to write it, and wants to know what may be left out. */
  sent?: boolean;
}

/** The fields of a model. */
export function Model({ document, schema, sent = false }: ModelProps) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => ({
    name,
    schema: field,
    required: sent && (schema.required?.includes(name) ?? false),
  }));
  return (
    <>
      {schema.description && <Prose text={schema.description} className="mb-2" />}
      <Fields document={document} rows={rows} sent={sent} />
    </>
  );
}

/** A model inside of another, made when it is opened: models may hold themselves. */
function Nested({ document, schema, sent = false }: ModelProps) {
  const model = modelOf(document, schema);
  if (!model) return null;
  return (
    <Disclosure label={<span className="font-mono text-xs">{model.name}</span>}>
      <Model document={document} schema={model.schema} sent={sent} />
    </Disclosure>
  );
}

function Disclosure({ label, children }: { label: ReactNode; children: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <div className="mt-1">
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="inline-flex min-h-6 items-center gap-1 rounded text-accent hover:underline"
      >
        <ChevronRight className={open ? "size-3.5 rotate-90" : "size-3.5"} aria-hidden="true" />
        {label}
      </button>
      {open && <div className="mt-1">{children}</div>}
    </div>
  );
}
