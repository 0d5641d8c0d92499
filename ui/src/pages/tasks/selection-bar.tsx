import { Ban, FastForward, RotateCw, Trash2, Undo2, X } from "lucide-react";
import type { BulkAction, Task } from "@/api/model";
import { Button, IconButton } from "@/components/button";
import { commonObstacle } from "@/pages/tasks/allowed";
import { count } from "@/text/number";

export interface SelectionBarProps {
  selected: readonly Task[];
  /** Everything that matches is meant, not only what is on this page. */
  all: boolean;
  /** All that match, in words: "10,000+". Null where they are all on this page. */
  total: string | null;
  onAll: () => void;
  onClear: () => void;
  onAct: (action: BulkAction) => void;
}

const ACTIONS = [
  { action: "retry", label: "Retry", icon: RotateCw },
  { action: "run-now", label: "Run now", icon: FastForward },
  { action: "cancel", label: "Cancel", icon: Ban },
  { action: "revive", label: "Revive", icon: Undo2 },
  { action: "delete", label: "Delete", icon: Trash2 },
] as const;

/** In place of the list's title while something is selected. */
export function SelectionBar({ selected, all, total, onAll, onClear, onAct }: SelectionBarProps) {
  return (
    <fieldset className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1">
      <legend className="sr-only">Selected tasks</legend>
      <span role="status" className="font-medium">
        {all ? `All ${total} that match are selected` : `${count(selected.length)} selected`}
      </span>
      {!all && total !== null && (
        <Button size="small" tone="ghost" className="text-accent!" onClick={onAll}>
          Select all {total} that match
        </Button>
      )}
      {ACTIONS.map(({ action, label, icon: Icon }) => (
        <Button
          key={action}
          size="small"
          icon={<Icon className="size-3.5" aria-hidden="true" />}
          reason={all ? null : commonObstacle(action, selected)}
          onClick={() => onAct(action)}
        >
          {label}…
        </Button>
      ))}
      <IconButton label="Clear the selection" size="small" onClick={onClear}>
        <X className="size-3.5" aria-hidden="true" />
      </IconButton>
    </fieldset>
  );
}
