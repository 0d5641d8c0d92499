import { CircleAlert, Info } from "lucide-react";
import type { ReactNode } from "react";
import { SafeText } from "@/components/safe-text";
import type { Problem } from "@/pages/tasks/search/filter";

export interface SearchNotesProps {
  id: string;
  /** The search. */
  text: string;
  problems: readonly Problem[];
  /** What is no fault but good to know. */
  notes: readonly string[];
  onSearch: (text: string) => void;
}

/** What is wrong with the search, and what to know about it. Always there, so that it is read aloud when it fills. */
export function SearchNotes({ id, text, problems, notes, onSearch }: SearchNotesProps) {
  return (
    <div id={id} role="status" className="space-y-1 empty:hidden">
      {problems.map(({ message, start, end, instead }) => (
        <Note key={message} icon={<CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden="true" />}>
          <SafeText text={message} max={300} />
          {instead.map((word) => (
            <button
              key={word}
              type="button"
              onClick={() => onSearch(text.slice(0, start) + word + text.slice(end))}
              className="ml-2 max-w-full truncate rounded border border-line-strong px-1.5 font-mono text-accent text-xs hover:bg-raised"
            >
              <SafeText text={word} max={60} />
            </button>
          ))}
        </Note>
      ))}
      {notes.map((note) => (
        <Note key={note} icon={<Info className="mt-0.5 size-4 shrink-0 text-faint" aria-hidden="true" />}>
          <SafeText text={note} max={300} />
        </Note>
      ))}
    </div>
  );
}

function Note({ icon, children }: { icon: ReactNode; children: ReactNode }) {
  return (
    <p className="flex items-start gap-2 text-dim">
      {icon}
      <span className="min-w-0 break-words">{children}</span>
    </p>
  );
}
