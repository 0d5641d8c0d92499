import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { Live, type LiveState } from "@/hooks/live";

const LiveContext = createContext<Live | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [live] = useState(() => new Live(queries));
  useEffect(() => live.start(), [live]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** Whether what is shown is kept up to date, and how to pause that or to read everything now. */
export function useLive(): { state: LiveState; toggle: () => void; refresh: () => void } {
  const live = useContext(LiveContext);
  if (!live) throw new Error("useLive needs a LiveProvider above it");
  const state = useSyncExternalStore(live.subscribe, () => live.state);
  return { state, toggle: live.toggle, refresh: live.refresh };
}
