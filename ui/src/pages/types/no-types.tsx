import { Shapes } from "lucide-react";
import { EmptyState } from "@/components/empty-state";

/** What to do where no type is known. */
export function NoTypes() {
  return (
    <EmptyState icon={Shapes} title="No task types are known yet" command="tasklib serve app.tasks">
      A type shows up with its first task, with a worker that handles it, or when the server loads its module.
    </EmptyState>
  );
}
