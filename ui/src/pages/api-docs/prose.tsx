import { classes } from "@/components/classes";

/** A description as the server's source has it: lines are wrapped anywhere, and `code` stands between backticks. */
export function Prose({ text, className }: { text: string; className?: string }) {
  return text.split(/\n\s*\n/).map((paragraph, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: paragraphs have no other name, and never move
    <p key={at} className={classes("not-last:mb-2", className)}>
      <Words text={paragraph} />
    </p>
  ));
}

/** The same inside of a line. */
export function Words({ text }: { text: string }) {
  return text
    .replace(/\s+/g, " ")
    .split("`")
    .map((part, at) =>
      at % 2 ? (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other name, and never move
        <code key={at} className="font-mono text-xs">
          {part}
        </code>
      ) : (
        part
      ),
    );
}
