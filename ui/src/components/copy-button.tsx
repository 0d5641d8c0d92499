import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "@/components/button";
import { showError } from "@/components/toast";

export interface CopyButtonProps {
  /** A function where making the text is work. */
  text: string | (() => string);
  /** What is copied: "Copy payload". */
  label: string;
}

const SHOWN_MS = 1500;

export function CopyButton({ text, label }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);

  async function copy() {
    try {
      await copyText(typeof text === "string" ? text : text());
      setCopied(true);
    } catch (error) {
      showError(error);
    }
  }

  return (
    <IconButton label={copied ? "Copied" : label} size="small" onClick={copy}>
      {copied ? <Check className="size-3.5" aria-hidden="true" /> : <Copy className="size-3.5" aria-hidden="true" />}
    </IconButton>
  );
}

/** Puts the text on the clipboard, or throws. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).catch(refused);
  // Over plain HTTP on another host than this one, browsers offer only the old way.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr-only";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) refused();
}

function refused(): never {
  throw new Error("The browser does not allow copying here. Select the text and copy it by keyboard.");
}
