import { deleteSchedule } from "@/api/actions";
import type { Schedule } from "@/api/model";
import { ConfirmDialog } from "@/components/confirm-dialog";
import { useAction } from "@/hooks/use-action";
import { escapeText } from "@/text/escape";

export function DeleteDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const name = escapeText(schedule.name).slice(0, 80);
  const remove = useAction(
    () => deleteSchedule(schedule.name),
    "dialog",
    () => `${name} was deleted.`,
  );
  return (
    <ConfirmDialog
      open
      onOpenChange={onClose}
      title={`Delete ${name}?`}
      description="It submits nothing any more. The tasks that it has submitted stay."
      confirm="Delete"
      danger
      onConfirm={() => remove.mutateAsync(undefined)}
    />
  );
}
