import { Ban, Ellipsis, FastForward, RotateCw, Trash2, Undo2 } from "lucide-react";
import type { Task } from "@/api/model";
import { IconButton } from "@/components/button";
import { Menu, MenuItem } from "@/components/menu";
import { obstacle } from "@/pages/tasks/allowed";
import { shortId } from "@/pages/tasks/cells";
import { useTaskActions } from "@/pages/tasks/task-actions";

const icon = "size-4 shrink-0";

export function RowMenu({ task }: { task: Task }) {
  const { act } = useTaskActions();
  const name = `Actions for task ${shortId(task.id)}`;
  return (
    <Menu
      label={name}
      trigger={
        <IconButton label={name} size="small">
          <Ellipsis className={icon} aria-hidden="true" />
        </IconButton>
      }
    >
      <MenuItem
        icon={<RotateCw className={icon} aria-hidden="true" />}
        reason={obstacle("retry", task)}
        onSelect={() => act("retry", task)}
      >
        Retry now
      </MenuItem>
      <MenuItem
        icon={<Ban className={icon} aria-hidden="true" />}
        reason={obstacle("cancel", task)}
        onSelect={() => act("cancel", task)}
      >
        Cancel…
      </MenuItem>
      {obstacle("run-now", task) === null && (
        <MenuItem icon={<FastForward className={icon} aria-hidden="true" />} onSelect={() => act("run-now", task)}>
          Run now
        </MenuItem>
      )}
      {obstacle("revive", task) === null && (
        <MenuItem icon={<Undo2 className={icon} aria-hidden="true" />} onSelect={() => act("revive", task)}>
          Revive
        </MenuItem>
      )}
      <MenuItem
        danger
        icon={<Trash2 className={icon} aria-hidden="true" />}
        reason={obstacle("delete", task)}
        onSelect={() => act("delete", task)}
      >
        Delete…
      </MenuItem>
    </Menu>
  );
}
