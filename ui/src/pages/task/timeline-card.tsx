import { Link } from "@tanstack/react-router";
import {
  AlarmClock,
  Ban,
  CircleDot,
  CopyPlus,
  Ellipsis,
  FastForward,
  Hand,
  Hourglass,
  Layers,
  type LucideIcon,
  Plus,
  RotateCcw,
  Trash2,
  Undo2,
  User,
} from "lucide-react";
import type { ReactNode } from "react";
import type { AuditEntry, TaskDetail } from "@/api/model";
import { Card } from "@/components/card";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime, RelativeTime } from "@/components/times";
import { Countdown } from "@/pages/task/countdown";
import { folded, type TimelineEvent, timelineOf } from "@/pages/task/timeline";
import { TimelineAttempt } from "@/pages/task/timeline-attempt";
import { TimelineItem } from "@/pages/task/timeline-item";
import { plural } from "@/text/number";

export interface TimelineCardProps {
  task: TaskDetail;
  audit: readonly AuditEntry[];
  /** The audit trail could not be read. */
  incomplete: boolean;
}

export function TimelineCard({ task, audit, incomplete }: TimelineCardProps) {
  return (
    <Card title="Timeline">
      {incomplete && <p className="mb-3 text-dim">What operators did cannot be read now, and is missing here.</p>}
      <ol aria-label="Timeline, newest first">
        {folded(timelineOf(task, audit)).map((event) =>
          event.kind === "same" ? (
            <Same key={event.key} events={event.events} of={task.maxAttempts} />
          ) : (
            <Told key={event.key} event={event} of={task.maxAttempts} />
          ),
        )}
      </ol>
    </Card>
  );
}

function Told({ event, of }: { event: TimelineEvent; of: number }) {
  return event.kind === "attempt" ? <TimelineAttempt attempt={event} of={of} /> : <Event event={event} of={of} />;
}

/** What a row of equal failures would say again and again. The browser's own disclosure: its search opens it. */
function Same({ events, of }: { events: readonly TimelineEvent[]; of: number }) {
  const snoozes = events[0]?.kind === "released";
  return (
    <TimelineItem
      icon={Layers}
      tone={snoozes ? "text-pending" : "text-failed"}
      title={
        snoozes ? plural(events.length, "earlier snooze") : `${plural(events.length, "earlier attempt")} ended alike`
      }
    >
      <details>
        <summary className="rounded hover:bg-raised">Show them</summary>
        <ol aria-label={snoozes ? "Earlier snoozes" : "Attempts that ended alike"} className="mt-2">
          {events.map((event) => (
            <Told key={event.key} event={event} of={of} />
          ))}
        </ol>
      </details>
    </TimelineItem>
  );
}

function Event({ event, of }: { event: Exclude<TimelineEvent, { kind: "attempt" }>; of: number }) {
  switch (event.kind) {
    case "next":
      return (
        <TimelineItem icon={Hourglass} tone="text-pending" title={`Attempt ${event.number}${of ? ` of ${of}` : ""}`}>
          {event.at ? (
            <>
              {event.cause === "retry" ? "Retries " : "Starts "}
              <Countdown to={event.at} /> <Faint at={event.at} />
            </>
          ) : event.cause === "tasks" ? (
            "Waits for other tasks"
          ) : (
            "Waits for a worker"
          )}
        </TimelineItem>
      );
    case "operator": {
      const [icon, verb] = deedOf(event.action, event.running);
      return (
        <TimelineItem
          icon={icon}
          tone="text-accent"
          title={
            <>
              <SafeText text={event.actor} max={60} /> {verb}
            </>
          }
        >
          <RelativeTime at={event.at} /> <Faint at={event.at} />
          {event.bulk && <Together bulkId={event.bulkId} />}
          {event.copy && (
            <Link
              to="/tasks/$taskId"
              params={{ taskId: event.copy }}
              className="block break-all font-mono text-accent text-xs hover:underline"
            >
              {event.copy}
            </Link>
          )}
        </TimelineItem>
      );
    }
    case "asked":
      return (
        <TimelineItem icon={Hand} tone="text-cancelled" title="Asked to stop">
          <RelativeTime at={event.at} /> <Faint at={event.at} />
        </TimelineItem>
      );
    case "cancelled":
      return (
        <TimelineItem
          icon={Ban}
          tone="text-cancelled"
          title={event.again ? "Cancelled before it ran again" : "Cancelled before it ran"}
        >
          <RelativeTime at={event.at} /> <Faint at={event.at} />
        </TimelineItem>
      );
    case "released":
      return (
        <TimelineItem
          icon={event.until ? AlarmClock : Undo2}
          tone="text-pending"
          title={event.until ? "Snoozed by its handler" : "Given back by its worker"}
        >
          <RelativeTime at={event.at} /> <Faint at={event.at} />
          {event.until && (
            <span className="block">
              Until <AbsoluteTime at={event.until} />
            </span>
          )}
          <span className="block">The attempt does not count.</span>
        </TimelineItem>
      );
    case "gap":
      return (
        <TimelineItem icon={Ellipsis} tone="text-faint" title={`${plural(event.count, "attempt")} in between`}>
          No longer kept: the first and the latest are.
        </TimelineItem>
      );
    case "submitted":
      return (
        <TimelineItem icon={Plus} tone="text-dim" title="Submitted">
          <RelativeTime at={event.at} /> <Faint at={event.at} />
          {event.runAfter && (
            <span className="block">
              To run at <AbsoluteTime at={event.runAfter} />
            </span>
          )}
        </TimelineItem>
      );
  }
}

function Together({ bulkId }: { bulkId: string | null }) {
  if (bulkId === null) return <span className="block">together with others</span>;
  return (
    <Link to="/audit" search={{ bulk: bulkId }} className="block text-accent hover:underline">
      together with others
    </Link>
  );
}

const DEEDS: Record<string, [LucideIcon, ReactNode]> = {
  retry: [RotateCcw, "retried it"],
  cancel: [Ban, "cancelled it"],
  delete: [Trash2, "deleted it"],
  "run-now": [FastForward, "let it run now"],
  revive: [Undo2, "revived it"],
  copy: [CopyPlus, "ran it again as a copy"],
  submit: [Plus, "submitted it"],
};

function deedOf(action: string, running: boolean): [LucideIcon, ReactNode] {
  if (running) return [Hand, "asked it to stop"];
  return DEEDS[action] ?? [action ? User : CircleDot, <SafeText key="action" text={`: ${action}`} max={60} />];
}

function Faint({ at }: { at: string | null }) {
  return (
    <span className="block text-faint">
      <AbsoluteTime at={at} />
    </span>
  );
}
