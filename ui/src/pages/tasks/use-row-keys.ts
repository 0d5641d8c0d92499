import type { RefObject } from "react";
import { useHotkeys } from "@/hooks/use-hotkeys";

export interface RowKeys {
  /** Holds elements with data-row. */
  list: RefObject<HTMLElement | null>;
  onOpen: (id: string) => void;
  /** Null where nothing can be selected. */
  onSelect: ((id: string) => void) | null;
}

/** Moves among the rows by keyboard. */
export function useRowKeys({ list, onOpen, onSelect }: RowKeys): void {
  const rows = () => [...(list.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
  const current = () => document.activeElement?.closest<HTMLElement>("[data-row]") ?? null;

  function move(by: number) {
    const all = rows();
    const here = current();
    const at = here ? all.indexOf(here) + by : by > 0 ? 0 : all.length - 1;
    all[Math.max(0, Math.min(all.length - 1, at))]?.focus();
  }

  function withCurrent(act: (id: string) => void) {
    const id = current()?.dataset["row"];
    if (id) act(id);
  }

  const down = () => move(1);
  const up = () => move(-1);
  useHotkeys([
    { key: "ArrowDown", label: "Next task", run: down },
    { key: "j", label: "Next task", run: down },
    { key: "ArrowUp", label: "Previous task", run: up },
    { key: "k", label: "Previous task", run: up },
    { key: "Enter", label: "Open the task", run: () => withCurrent(onOpen) },
    ...(onSelect ? [{ key: "x", label: "Select the task", run: () => withCurrent(onSelect) }] : []),
  ]);
}
