import { Link } from "@tanstack/react-router";
import { ArrowLeft } from "lucide-react";
import type { ReactNode } from "react";
import { lastList } from "@/app/last-list";
import { qualified } from "@/pages/tasks/search/qualified";

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

/** To the tasks that are found so. */
export function TasksWith({ q, children }: { q: Parameters<typeof qualified>[0]; children: ReactNode }) {
  return (
    <Link to="/tasks" search={{ q: qualified(q) }} className="text-accent hover:underline">
      {children}
    </Link>
  );
}
