import { Pause, Play, RotateCw } from "lucide-react";
import { IconButton } from "@/components/button";
import { classes } from "@/components/classes";
import { Tooltip } from "@/components/tooltip";
import type { LiveState } from "@/hooks/live";
import { useLive } from "@/hooks/use-live";

const LOOKS: Record<LiveState, { label: string; dot: string; hint: string }> = {
  live: { label: "Live", dot: "bg-completed", hint: "Updates as tasks move. Click to pause." },
  connecting: { label: "Connecting", dot: "bg-processing", hint: "Waiting for the server." },
  paused: { label: "Paused", dot: "bg-cancelled", hint: "What you see stands still. Click to go on." },
  hidden: { label: "Waiting", dot: "bg-cancelled", hint: "Stopped while this tab is hidden." },
  polling: {
    label: "Every 5 s",
    dot: "bg-processing",
    hint: "There are enough live streams already; this window reads now and then.",
  },
};

/** Says whether the page updates itself; pauses that, and reads everything at once. */
export function LiveIndicator() {
  const { state, toggle, refresh } = useLive();
  const look = LOOKS[state];
  const Icon = state === "paused" ? Play : Pause;
  return (
    <div className="flex items-center">
      <Tooltip label={look.hint}>
        <button
          type="button"
          onClick={toggle}
          aria-pressed={state === "paused"}
          aria-label={state === "paused" ? "Live updates are paused: go on" : `Live updates: ${look.label}. Pause`}
          data-live={state}
          className="flex h-8 items-center gap-1.5 rounded-md px-2 text-dim text-xs hover:bg-raised hover:text-text"
        >
          <span className={classes("size-2 rounded-full", look.dot)} aria-hidden="true" />
          <span className="max-sm:sr-only">{look.label}</span>
          <Icon className="size-3.5" aria-hidden="true" />
        </button>
      </Tooltip>
      <IconButton label="Refresh now (r)" onClick={refresh}>
        <RotateCw className="size-4" aria-hidden="true" />
      </IconButton>
    </div>
  );
}
