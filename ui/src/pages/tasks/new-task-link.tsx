import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";

export function NewTaskLink() {
  return (
    <Link
      to="/new"
      className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-raised"
    >
      <Plus className="size-4" aria-hidden="true" />
      New task
    </Link>
  );
}
