import { Link } from "@tanstack/react-router";
import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { lastList } from "@/app/last-list";

/** Back to the list, with the filters and the page that it had. */
export function BackToList() {
  return (
    <Link
      to="/tasks"
      search={lastList()}
      className="mb-2 inline-flex items-center gap-1 text-dim text-xs hover:text-text hover:underline"
    >
      <ArrowLeft className="size-3.5" aria-hidden="true" />
      All tasks
    </Link>
  );
}

/** To the tasks that match one qualifier. */
export function TasksWith({ qualifier, value, children }: { qualifier: string; value: string; children: ReactNode }) {
  return (
    <Link to="/tasks" search={{ q: term(qualifier, value) }} className="text-accent hover:underline">
      {children}
    </Link>
  );
}

/** As the search field takes it: quoted where it has to be. */
export function term(qualifier: string, value: string): string {
  return `${qualifier}:${/[\s"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value}`;
}
