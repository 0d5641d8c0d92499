import { Check, ChevronRight, Copy } from "lucide-react";
import { type ReactNode, useState } from "react";
import { ExactNumber, stringify } from "@/api/exact";
import { Button } from "@/components/button";
import { classes } from "@/components/classes";
import { copyText } from "@/components/copy-button";
import { entriesOf, isContainer } from "@/components/json-viewer-value";
import { SafeText } from "@/components/safe-text";
import { showError } from "@/components/toast";
import { count, plural } from "@/text/number";

const SHOWN_ITEMS = 100;
const SHOWN_CHARACTERS = 1000;

export interface JsonNodeProps {
  /** Its key in an object, its place in an array; neither at the top. */
  name?: string | number;
  value: unknown;
  /** How many levels are open from here on. */
  open: number;
}

export function JsonNode({ name, value, open }: JsonNodeProps) {
  const label = name === undefined ? null : <Name name={name} />;
  if (isContainer(value) && entriesOf(value).length > 0) {
    return <Container label={label} value={value} open={open} name={name} />;
  }
  return (
    <div className="group/line flex items-start pl-4">
      <span className="min-w-0 break-words">
        {label}
        {isContainer(value) ? (
          <span className="text-dim">{Array.isArray(value) ? "[]" : "{}"}</span>
        ) : (
          <Scalar value={value} />
        )}
      </span>
      {name !== undefined && <CopyNode value={value} name={name} skipped />}
    </div>
  );
}

interface ContainerProps {
  label: ReactNode;
  name: string | number | undefined;
  value: object;
  open: number;
}

function Container({ label, name, value, open }: ContainerProps) {
  const [expanded, setExpanded] = useState(open > 0);
  const [shown, setShown] = useState(SHOWN_ITEMS);
  const list = Array.isArray(value);
  const entries = entriesOf(value);
  const [left, right] = list ? ["[", "]"] : ["{", "}"];
  const rest = entries.length - shown;
  return (
    <div>
      <div className="group/line flex items-start">
        <button
          type="button"
          aria-expanded={expanded}
          onClick={() => setExpanded(!expanded)}
          className="inline-flex min-w-0 items-start rounded text-left hover:bg-raised"
        >
          <ChevronRight
            className={classes("mt-0.5 size-4 shrink-0 text-faint transition-transform", expanded && "rotate-90")}
            aria-hidden="true"
          />
          <span className="min-w-0 break-words">
            {label}
            <span className="whitespace-nowrap text-dim">
              {left}
              {!expanded && `…${right} ${plural(entries.length, list ? "item" : "key")}`}
            </span>
          </span>
        </button>
        {name !== undefined && <CopyNode value={value} name={name} />}
      </div>
      {expanded && (
        <>
          <ul className="ml-[7px] border-l pl-2.5">
            {entries.slice(0, shown).map(([key, item], at) => (
              <li key={key}>
                <JsonNode name={list ? at : key} value={item} open={open - 1} />
              </li>
            ))}
          </ul>
          {rest > 0 && (
            <div className="ml-4 flex flex-wrap font-sans">
              <Button size="small" tone="ghost" onClick={() => setShown(shown + SHOWN_ITEMS)}>
                Show {Math.min(SHOWN_ITEMS, rest)} more of {count(entries.length)}
              </Button>
            </div>
          )}
          <div className="pl-4 text-dim">{right}</div>
        </>
      )}
    </div>
  );
}

function Name({ name }: { name: string | number }) {
  // A place in an array is not part of the JSON: it is left out when text is selected.
  if (typeof name === "number") return <span className="mr-1.5 select-none text-faint">{name}:</span>;
  return (
    <span className="mr-1.5">
      <SafeText text={JSON.stringify(name)} max={200} className="text-accent" />:
    </span>
  );
}

function Scalar({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value === "string") {
    const cut = !whole && value.length > SHOWN_CHARACTERS;
    return (
      <span className="text-completed">
        <SafeText text={JSON.stringify(cut ? value.slice(0, SHOWN_CHARACTERS) : value)} />
        {cut && (
          <Button size="small" tone="ghost" className="font-sans" onClick={() => setWhole(true)}>
            … show all {plural(value.length, "character")}
          </Button>
        )}
      </span>
    );
  }
  const text = value instanceof ExactNumber ? value.source : String(value);
  return <span className={value === null ? "text-faint" : "break-all text-pending"}>{text}</span>;
}

interface CopyNodeProps {
  value: unknown;
  name: string | number;
  /** Not a stop of the tab key: a long list would have one on each line, and its parent can be copied. */
  skipped?: boolean;
}

/** Shown on hover and focus. No tooltip component: there may be thousands. */
function CopyNode({ value, name, skipped = false }: CopyNodeProps) {
  const [copied, setCopied] = useState(false);
  const Icon = copied ? Check : Copy;

  function copy() {
    // Text without its quotes: it is wanted to be used, not to be read as JSON.
    copyText(typeof value === "string" ? value : stringify(value)).then(() => setCopied(true), showError);
  }

  return (
    <button
      type="button"
      aria-label={`${copied ? "Copied" : "Copy"} ${typeof name === "number" ? `item ${name}` : "value"}`}
      title={copied ? "Copied" : "Copy"}
      {...(skipped ? { tabIndex: -1 } : {})}
      onClick={copy}
      onBlur={() => setCopied(false)}
      onPointerLeave={() => setCopied(false)}
      className="ml-1 grid size-5 shrink-0 place-items-center rounded text-dim opacity-0 hover:bg-raised hover:text-text focus-visible:opacity-100 group-hover/line:opacity-100"
    >
      <Icon className="size-3" aria-hidden="true" />
    </button>
  );
}
