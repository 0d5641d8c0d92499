import { CopyButton } from "@/components/copy-button";

/** A command line to run, ready to copy. */
export function Command({ text }: { text: string }) {
  return (
    <div className="flex max-w-full items-center gap-2 rounded-md border bg-raised py-1 pr-1 pl-3 text-left">
      <code className="min-w-0 overflow-x-auto whitespace-pre font-mono text-xs">{text}</code>
      <CopyButton text={text} label="Copy command" />
    </div>
  );
}
