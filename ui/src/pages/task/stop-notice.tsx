import { Hand } from "lucide-react";
import type { TaskDetail } from "@/api/model";
import { Card } from "@/components/card";
import { RelativeTime } from "@/components/times";
import { isAskedToStop } from "@/pages/task/state";

/** Between the request and its effect: nobody should have to wonder whether it was heard. */
export function StopNotice({ task }: { task: TaskDetail }) {
  if (!isAskedToStop(task)) return null;
  return (
    <Card title="Asked to stop">
      <div className="flex gap-3">
        <Hand className="mt-0.5 size-4 shrink-0 text-cancelled" aria-hidden="true" />
        <p className="text-dim">
          Somebody cancelled it <RelativeTime at={task.cancelRequestedAt} />. Its worker has been told, and stops it. If
          it finishes first, it is completed.
        </p>
      </div>
    </Card>
  );
}
