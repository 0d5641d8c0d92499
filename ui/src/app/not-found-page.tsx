import { Link } from "@tanstack/react-router";
import { MapPinOff } from "lucide-react";
import { EmptyState } from "@/components/empty-state";
import { PageHeader } from "@/components/page-header";

export function NotFoundPage() {
  return (
    <>
      <PageHeader title="Nothing here" />
      <EmptyState
        icon={MapPinOff}
        title="There is no page at this address"
        actions={
          <Link to="/tasks" className="font-medium text-accent underline">
            To the tasks
          </Link>
        }
      />
    </>
  );
}
