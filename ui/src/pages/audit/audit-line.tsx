import { Link } from "@tanstack/react-router";
import { memo } from "react";
import type { AuditEntry } from "@/api/model";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";
import { AbsoluteTime, RelativeTime } from "@/components/times";
import { particulars, sentence } from "@/pages/audit/sentence";
import { shortId } from "@/pages/tasks/cells";
import { qualified } from "@/pages/tasks/search/qualified";

export interface AuditLineProps {
  entry: AuditEntry;
  /** In columns where there is room. */
  columns?: boolean;
}

/** One action: when, who, what, and to what. */
export const AuditLine = memo(function AuditLine({ entry, columns = false }: AuditLineProps) {
  const more = particulars(entry);
  return (
    <li
      data-action={entry.action}
      className={classes("grid gap-x-4 gap-y-0.5 px-4 py-2.5", columns && "md:grid-cols-[13rem_9rem_minmax(0,1fr)]")}
    >
      <span className="text-dim">
        <RelativeTime at={entry.at} />
        <span className={classes("ml-2 text-2xs text-faint", columns && "md:ml-0 md:block")}>
          <AbsoluteTime at={entry.at} />
        </span>
      </span>
      <SafeText text={entry.actor} max={60} className="min-w-0 break-words font-medium" />
      <div className="min-w-0">
        <p>
          <SafeText text={sentence(entry)} max={120} /> <Target entry={entry} />
        </p>
        {more && <SafeText as="p" text={more} max={400} className="break-words text-dim text-xs" />}
      </div>
    </li>
  );
});

/** The way to what it was done to. */
function Target({ entry }: { entry: AuditEntry }) {
  const copy = copyOf(entry.detail);
  const link = "text-accent hover:underline";
  return (
    <>
      {entry.type && (
        <Link to="/tasks" search={{ q: qualified({ type: entry.type }) }} className={`break-words ${link}`}>
          <SafeText text={entry.type} max={120} />
        </Link>
      )}{" "}
      {entry.taskId && <TaskLink id={entry.taskId} />}
      {copy && (
        <>
          {" "}
          as <TaskLink id={copy} />
        </>
      )}
    </>
  );
}

function copyOf(detail: unknown): string | null {
  const found = typeof detail === "object" && detail !== null && "copy" in detail ? detail.copy : null;
  return typeof found === "string" ? found : null;
}

/** By the digits that lists show. */
function TaskLink({ id }: { id: string }) {
  return (
    <Link
      to="/tasks/$taskId"
      params={{ taskId: id }}
      title={id}
      className="font-mono text-accent text-xs hover:underline"
    >
      {shortId(id)}
    </Link>
  );
}
