import { useEffect, useRef, useSyncExternalStore } from "react";

export interface Hotkey {
  /** As in KeyboardEvent.key: "/", "?", "r", "ArrowDown". */
  key: string;
  /** What it does, for the help dialog. */
  label: string;
  run: (event: KeyboardEvent) => void;
}

const EMPTY: readonly Hotkey[] = [];
const active: Hotkey[][] = [];
const listeners = new Set<() => void>();
let shown: readonly Hotkey[] = EMPTY;

function changed(): void {
  shown = active.flat();
  for (const listener of listeners) listener();
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.key === "Enter" && isPressable(event.target)) return;
  if (document.querySelector("[data-modal][data-state=open], [role=menu]")) return; // they have keys of their own
  const hotkey = shown.findLast((each) => each.key === event.key);
  if (!hotkey) return;
  event.preventDefault();
  hotkey.run(event);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const typed = target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type);
  return typed || target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName);
}

/** Enter belongs to what it would press. */
function isPressable(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary, input") !== null;
}

/** Keys while this component is on the page. They show in the help dialog; where two want a key, the latest gets it. */
export function useHotkeys(hotkeys: readonly Hotkey[]): void {
  const latest = useRef(hotkeys);
  latest.current = hotkeys;
  const named = hotkeys.map((each) => `${each.key} ${each.label}`).join("\n");
  // biome-ignore lint/correctness/useExhaustiveDependencies: the names say when the keys are others
  useEffect(() => {
    const mine = latest.current.map((each, at) => ({
      ...each,
      run: (event: KeyboardEvent) => latest.current[at]?.run(event),
    }));
    if (active.length === 0) window.addEventListener("keydown", onKeyDown);
    active.push(mine);
    changed();
    return () => {
      active.splice(active.indexOf(mine), 1);
      if (active.length === 0) window.removeEventListener("keydown", onKeyDown);
      changed();
    };
  }, [named]);
}

/** All keys that work now. */
export function useActiveHotkeys(): readonly Hotkey[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => shown,
  );
}
