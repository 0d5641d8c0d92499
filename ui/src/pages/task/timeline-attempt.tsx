import { Ban, CircleCheck, CircleX, LoaderCircle, type LucideIcon, Unplug, Zap } from "lucide-react";
import { memo } from "react";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime, Duration, RelativeTime } from "@/components/times";
import { TasksWith } from "@/pages/task/list-link";
import type { AttemptEvent, AttemptState } from "@/pages/task/timeline";
import { TimelineItem } from "@/pages/task/timeline-item";
import { CUT_NOTE, isCut, lastLine } from "@/text/last-line";

const LOOKS: Record<AttemptState, { icon: LucideIcon; tone: string; word: string }> = {
  running: { icon: LoaderCircle, tone: "text-processing", word: "running" },
  completed: { icon: CircleCheck, tone: "text-completed", word: "completed" },
  failed: { icon: CircleX, tone: "text-failed", word: "failed" },
  lost: { icon: Unplug, tone: "text-failed", word: "worker lost" },
  crashed: { icon: Zap, tone: "text-failed", word: "its process died" },
  stopped: { icon: Ban, tone: "text-cancelled", word: "stopped as asked" },
};

export interface TimelineAttemptProps {
  attempt: AttemptEvent;
  /** How many there may be; 0 is no limit. */
  of: number;
}

export const TimelineAttempt = memo(function TimelineAttempt({ attempt, of }: TimelineAttemptProps) {
  const look = LOOKS[attempt.state];
  const number = attempt.number === null ? "Attempt" : `Attempt ${attempt.number}${of ? ` of ${of}` : ""}`;
  return (
    <TimelineItem
      icon={look.icon}
      tone={look.tone}
      spin={attempt.state === "running"}
      state={attempt.state}
      title={
        <>
          {number}: {look.word}
        </>
      }
    >
      {attempt.state === "lost" && <p>Its worker vanished before it could finish.</p>}
      <p>
        <RelativeTime at={attempt.ended ?? attempt.started} />
        {attempt.runMs !== null ? (
          <>
            {" · ran for "}
            <Duration ms={attempt.runMs} />
          </>
        ) : (
          attempt.started &&
          (attempt.ended || attempt.state === "running") && (
            <>
              {" · claimed for "}
              <Duration from={attempt.started} to={attempt.ended} />
            </>
          )
        )}
      </p>
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-2 text-faint">
        <dt>Start</dt>
        <dd>
          <AbsoluteTime at={attempt.started} />
        </dd>
        {attempt.ended && (
          <>
            <dt>End</dt>
            <dd>
              <AbsoluteTime at={attempt.ended} />
            </dd>
          </>
        )}
      </dl>
      {attempt.worker && (
        <p>
          on <Worker id={attempt.worker} linked={attempt.state === "running"} />
        </p>
      )}
      {attempt.error && <AttemptError error={attempt.error} />}
      {attempt.final && attempt.state !== "completed" && attempt.state !== "stopped" && (
        <p className="mt-1">No attempt follows by itself.</p>
      )}
    </TimelineItem>
  );
});

/** Tasks can be searched for by their worker only while it has them. */
function Worker({ id, linked }: { id: string; linked: boolean }) {
  const shown = <SafeText text={id} max={120} className="break-all" />;
  return linked ? <TasksWith q={{ worker: id }}>{shown}</TasksWith> : shown;
}

/** One line of it, the rest on request. The browser's own disclosure: its search opens it by itself. */
function AttemptError({ error }: { error: string }) {
  const line = lastLine(error);
  const summary = <SafeText text={line} max={200} className="break-words font-mono text-failed" />;
  if (line === error.trim() && line.length <= 200) return <p className="mt-1">{summary}</p>;
  return (
    <details className="mt-1">
      <summary className="rounded hover:bg-raised">{summary}</summary>
      <section
        aria-label="Error of this attempt"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        className="mt-1 max-h-80 overflow-auto rounded-md border bg-ground p-2"
      >
        {isCut(error) && <p className="mb-1">{CUT_NOTE}</p>}
        <SafeText as="pre" text={error} multiline className="whitespace-pre! font-mono text-2xs text-text" />
      </section>
    </details>
  );
}
