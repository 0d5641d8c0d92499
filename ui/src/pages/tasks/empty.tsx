import { Inbox, SearchX } from "lucide-react";
import { Button } from "@/components/button";
import { Command } from "@/components/command";
import { EmptyState } from "@/components/empty-state";

const PYTHON = `from shop.tasks import greet
handle = greet.submit("Ada")
print(handle.result(timeout=10))`;

/** Nobody has submitted anything yet. */
export function NoTasks() {
  return (
    <EmptyState icon={Inbox} title="No tasks yet">
      <div className="flex flex-col items-center gap-3">
        <p>A task appears here as soon as it is submitted. In a terminal:</p>
        <Command text="tasklib submit greet name=Ada" />
        <p>or in Python:</p>
        <Command text={PYTHON} />
      </div>
    </EmptyState>
  );
}

export interface NoMatchProps {
  /** A page beyond the end, rather than a search without matches. */
  beyond: boolean;
  onFirst: () => void;
  /** Null: all tasks have been looked at. */
  onOlder: (() => void) | null;
  onClear: () => void;
}

export function NoMatch({ beyond, onFirst, onOlder, onClear }: NoMatchProps) {
  if (onOlder) {
    return (
      <EmptyState
        icon={SearchX}
        title="No task matches so far"
        actions={<Button onClick={onOlder}>Look at older tasks</Button>}
      >
        A page of a search looks at up to 20,000 tasks. A status, a type or a time leaves fewer to look at.
      </EmptyState>
    );
  }
  return beyond ? (
    <EmptyState
      icon={SearchX}
      title="There is nothing on this page any more"
      actions={<Button onClick={onFirst}>To the first page</Button>}
    >
      The tasks that were here have been deleted, or do not match the search any more.
    </EmptyState>
  ) : (
    <EmptyState icon={SearchX} title="No task matches" actions={<Button onClick={onClear}>Clear the filter</Button>}>
      Leave out a condition, or choose a longer time.
    </EmptyState>
  );
}
