import { Ban, CircleX, WrapText } from "lucide-react";
import { useState } from "react";
import type { TaskDetail } from "@/api/model";
import { Button } from "@/components/button";
import { Card } from "@/components/card";
import { classes } from "@/components/classes";
import { CopyButton } from "@/components/copy-button";
import { SafeText } from "@/components/safe-text";
import { CUT_NOTE, isCut, lastLine } from "@/text/last-line";

const TITLES: Record<string, string> = { failed: "Error", cancelled: "Stopped" };

/** The whole traceback; above it the line that says what went wrong. */
export function ErrorCard({ task, error }: { task: TaskDetail; error: string }) {
  const [wrap, setWrap] = useState(() => window.matchMedia("(width < 48rem)").matches);
  const summary = lastLine(error);
  const traced = error.trim() !== summary;
  const wanted = task.status === "cancelled"; // somebody asked for it: no cause for alarm
  const Icon = wanted ? Ban : CircleX;
  return (
    <Card
      title={(task.after?.cutBy ? "Cut off" : TITLES[task.status]) ?? "Error of the latest attempt"}
      actions={
        <>
          {traced && (
            <Button
              size="small"
              tone="ghost"
              aria-pressed={wrap}
              className="aria-pressed:bg-raised aria-pressed:text-text"
              icon={<WrapText className="size-3.5" aria-hidden="true" />}
              onClick={() => setWrap(!wrap)}
            >
              Wrap lines
            </Button>
          )}
          <CopyButton text={error} label="Copy error" />
        </>
      }
      flush
    >
      <p
        className={classes(
          "flex gap-2 px-4 py-2.5 font-medium last:rounded-b-lg",
          wanted ? "bg-cancelled-soft text-cancelled" : "bg-failed-soft text-failed",
        )}
      >
        <Icon className="mt-0.5 size-4 shrink-0" aria-hidden="true" />
        <SafeText text={summary} max={1000} className="min-w-0 break-words" />
      </p>
      {traced && (
        <section
          aria-label="Traceback"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
          tabIndex={0}
          className="max-h-[36rem] overflow-auto rounded-b-lg border-t px-4 py-3"
        >
          {isCut(error) && <p className="mb-2 text-dim">{CUT_NOTE}</p>}
          <SafeText
            as="pre"
            text={error}
            multiline
            className={classes("font-mono text-xs leading-5", wrap ? "break-words" : "whitespace-pre!")}
          />
        </section>
      )}
    </Card>
  );
}
