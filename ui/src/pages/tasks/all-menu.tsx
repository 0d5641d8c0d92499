import { Ban, ChevronDown, FastForward, RotateCw, Trash2, Undo2 } from "lucide-react";
import type { BulkAction, TaskPage } from "@/api/model";
import { Button } from "@/components/button";
import { Menu, MenuItem } from "@/components/menu";
import { totalOf } from "@/pages/tasks/range";

const icon = "size-4 shrink-0";

/** What can be done to everything that matches, without selecting it first. */
export function AllMenu({ data, onAct }: { data: TaskPage; onAct: (action: BulkAction) => void }) {
  return (
    <Menu
      label="All that match"
      trigger={
        <Button>
          <span>
            All {totalOf(data)}
            <span className="max-sm:sr-only"> that match</span>
          </span>
          <ChevronDown className={icon} aria-hidden="true" />
        </Button>
      }
    >
      <MenuItem icon={<RotateCw className={icon} aria-hidden="true" />} onSelect={() => onAct("retry")}>
        Retry the failed…
      </MenuItem>
      <MenuItem icon={<FastForward className={icon} aria-hidden="true" />} onSelect={() => onAct("run-now")}>
        Run the scheduled now…
      </MenuItem>
      <MenuItem icon={<Ban className={icon} aria-hidden="true" />} onSelect={() => onAct("cancel")}>
        Cancel the unfinished…
      </MenuItem>
      <MenuItem icon={<Undo2 className={icon} aria-hidden="true" />} onSelect={() => onAct("revive")}>
        Revive the cancelled…
      </MenuItem>
      <MenuItem danger icon={<Trash2 className={icon} aria-hidden="true" />} onSelect={() => onAct("delete")}>
        Delete the finished…
      </MenuItem>
    </Menu>
  );
}
