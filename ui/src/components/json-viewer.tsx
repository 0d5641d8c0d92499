import { type ReactNode, useState } from "react";
import { stringify } from "@/api/exact";
import { Button } from "@/components/button";
import { CopyButton } from "@/components/copy-button";
import { Select } from "@/components/field";
import { JsonNode } from "@/components/json-viewer-node";
import { depthOf } from "@/components/json-viewer-value";
import { SafeText } from "@/components/safe-text";
import { plural } from "@/text/number";

export interface JsonViewerProps {
  /** As `parse` of api/exact gives it. */
  value: unknown;
  /** What it is: "payload". Names the buttons. */
  label: string;
  /** How many levels are open at first. */
  depth?: number;
  /** Puts the buttons elsewhere than above the JSON. */
  frame?: (tools: ReactNode, json: ReactNode) => ReactNode;
}

const OPEN_DEPTH = 2;
const CHOICES = [1, 2, 3, 4, 5];
const EVERYTHING = 64; // levels; the server takes no deeper ones

/** JSON as a tree of disclosure buttons: numbers to the digit, strings as text and nothing but text. */
export function JsonViewer({ value, label, depth = OPEN_DEPTH, frame = above }: JsonViewerProps) {
  const [open, setOpen] = useState(depth);
  const [round, setRound] = useState(0);
  const [raw, setRaw] = useState(false);
  const levels = depthOf(value);

  function openTo(level: number) {
    setOpen(level);
    setRound(round + 1); // nodes remember what was clicked; a new round forgets it
  }

  const tools = (
    <>
      {levels > 0 && !raw && (
        <>
          {levels > 2 && <Levels levels={levels} open={open} label={label} onChange={openTo} />}
          <Button size="small" tone="ghost" onClick={() => openTo(EVERYTHING)} aria-label={`Expand all of ${label}`}>
            Expand
          </Button>
          <Button size="small" tone="ghost" onClick={() => openTo(0)} aria-label={`Collapse ${label}`}>
            Collapse
          </Button>
        </>
      )}
      <Button
        size="small"
        tone="ghost"
        aria-pressed={raw}
        aria-label={`Raw ${label}`}
        className="aria-pressed:bg-raised aria-pressed:text-text"
        onClick={() => setRaw(!raw)}
      >
        Raw
      </Button>
      <CopyButton text={() => stringify(value)} label={`Copy ${label}`} />
    </>
  );
  return frame(
    tools,
    raw ? (
      <SafeText as="pre" text={stringify(value)} multiline className="break-words font-mono text-xs leading-5" />
    ) : (
      <div key={round} className="overflow-x-auto font-mono text-xs leading-5">
        <JsonNode value={value} open={open} />
      </div>
    ),
  );
}

function above(tools: ReactNode, json: ReactNode): ReactNode {
  return (
    <>
      <div className="mb-1 flex flex-wrap items-center justify-end gap-1">{tools}</div>
      {json}
    </>
  );
}

interface LevelsProps {
  levels: number;
  open: number;
  label: string;
  onChange: (level: number) => void;
}

/** How deep it is open. */
function Levels({ levels, open, label, onChange }: LevelsProps) {
  const choices = CHOICES.filter((level) => level < levels);
  return (
    <Select
      aria-label={`Levels of ${label} shown`}
      value={open >= levels ? EVERYTHING : Math.min(open, choices.length)}
      onChange={(event) => onChange(Number(event.target.value))}
      className="[&>select]:h-7 [&>select]:text-xs [&>svg]:top-1.5"
    >
      <option value={0}>Closed</option>
      {choices.map((level) => (
        <option key={level} value={level}>
          {plural(level, "level")}
        </option>
      ))}
      <option value={EVERYTHING}>All levels</option>
    </Select>
  );
}
