import { type ElementType, useMemo } from "react";
import { classes } from "@/components/classes";
import { pieces } from "@/text/escape";

export interface SafeTextProps {
  text: string;
  /** Line breaks and tabs are kept; otherwise they show as \n and \t. */
  multiline?: boolean;
  /** Longer texts are cut, with a mark. */
  max?: number;
  className?: string;
  as?: ElementType;
}

/** Text that somebody else wrote: never markup, nothing in it invisible, and its direction stays its own. */
export function SafeText({ text, multiline = false, max, className, as: Tag = "bdi" }: SafeTextProps) {
  const cut = max !== undefined && text.length > max;
  const shown = useMemo(() => pieces(cut ? text.slice(0, max) : text, multiline), [text, multiline, cut, max]);
  return (
    <Tag className={classes(multiline && "whitespace-pre-wrap", className) || undefined}>
      {shown.map((piece, at) =>
        piece.stands ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and never move
          <span key={at} title={piece.stands} className="rounded-xs bg-raised px-0.5 font-mono text-dim text-[0.9em]">
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
      {cut && "…"}
    </Tag>
  );
}
