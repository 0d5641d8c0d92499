import { type FocusEvent, type PointerEvent, useCallback, useEffect, useState } from "react";

const SCROLLED_PX = 160;
/** A menu that closes gives the focus back a little later: nobody has left meanwhile. */
const LINGERS_MS = 400;

/** Whether somebody works with the rows: points at them, has the focus among them, or has scrolled down. */
export function useBusy() {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const [scrolled, setScrolled] = useState(false);
  useEffect(() => {
    const look = () => setScrolled(window.scrollY > SCROLLED_PX);
    look();
    window.addEventListener("scroll", look, { passive: true });
    return () => window.removeEventListener("scroll", look);
  }, []);
  /** No event tells that what had the focus, or was pointed at, is gone. */
  const forget = useCallback((everything: boolean) => {
    if (everything || document.activeElement === document.body) setFocused(false);
    if (everything) setPointed(false);
  }, []);
  const handlers = {
    onPointerEnter: ({ pointerType }: PointerEvent) => setPointed(pointerType === "mouse"),
    onPointerLeave: () => setPointed(false),
    onFocus: () => setFocused(true),
    onBlur: ({ currentTarget, relatedTarget }: FocusEvent) => setFocused(currentTarget.contains(relatedTarget)),
  };
  const active = pointed || focused || scrolled;
  const [busy, setBusy] = useState(active);
  useEffect(() => {
    if (active) setBusy(true);
    const timer = active ? 0 : window.setTimeout(() => setBusy(false), LINGERS_MS);
    return () => window.clearTimeout(timer);
  }, [active]);
  return { busy: busy || active, handlers, forget };
}
