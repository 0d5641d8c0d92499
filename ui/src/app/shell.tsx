import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Keyboard } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { EnvironmentBadge } from "@/app/environment-badge";
import { HelpDialog } from "@/app/help-dialog";
import { BottomNavigation, Sidebar } from "@/app/navigation";
import { PauseBanner, PauseControl } from "@/app/pause-control";
import { RateLimitControl } from "@/app/rate-limit-control";
import { SessionMenu } from "@/app/session-menu";
import { IconButton } from "@/components/button";
import { LiveIndicator } from "@/components/live-indicator";
import { Toasts } from "@/components/toast";
import { useHotkeys } from "@/hooks/use-hotkeys";
import { LiveProvider, useLive } from "@/hooks/use-live";

/** What is around every page. */
export function Shell() {
  return (
    <LiveProvider>
      <Frame />
      <Toasts />
    </LiveProvider>
  );
}

function Frame() {
  const main = useRef<HTMLElement>(null);
  const [help, setHelp] = useState(false);
  const { refresh } = useLive();
  const focusSearch = useFocusSearch();
  useFocusOnNewPage(main);
  useHotkeys([
    { key: "/", label: "Search tasks", run: focusSearch },
    { key: "r", label: "Refresh", run: refresh },
    { key: "?", label: "Show these keys", run: () => setHelp(true) },
  ]);
  return (
    <div className="md:grid md:min-h-screen md:grid-cols-[3.5rem_minmax(0,1fr)] lg:grid-cols-[12.5rem_minmax(0,1fr)]">
      <button
        type="button"
        onClick={() => main.current?.focus()}
        className="sr-only rounded-md bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:px-3 focus:py-2"
      >
        Skip to content
      </button>
      <Sidebar />
      <div className="min-w-0 pb-20 md:pb-6">
        <div className="sticky top-0 z-30 flex h-12 items-center justify-end gap-1 border-b bg-ground/95 px-3 backdrop-blur-sm md:px-6">
          <span className="mr-2 font-semibold md:hidden">tasklib</span>
          <EnvironmentBadge />
          <span className="grow" />
          <RateLimitControl />
          <PauseControl />
          <LiveIndicator />
          <IconButton label="Keyboard shortcuts (?)" onClick={() => setHelp(true)} className="max-md:hidden">
            <Keyboard className="size-4" aria-hidden="true" />
          </IconButton>
          <SessionMenu />
        </div>
        <PauseBanner />
        <main ref={main} id="main" tabIndex={-1} className="px-3 py-4 outline-none md:px-6">
          <Outlet />
        </main>
      </div>
      <BottomNavigation />
      <HelpDialog open={help} onOpenChange={setHelp} />
    </div>
  );
}

/** Keyboard and screen reader start at the top of the new page, as they would without a script. */
function useFocusOnNewPage(main: React.RefObject<HTMLElement | null>): void {
  const path = useLocation({ select: (location) => location.pathname });
  const shown = useRef(path);
  useEffect(() => {
    if (shown.current === path) return;
    shown.current = path;
    // A page may have put it on a place of its own.
    if (!main.current?.querySelector("[data-row]:focus")) main.current?.focus({ preventScroll: true });
  }, [path, main]);
}

function useFocusSearch(): () => void {
  const navigate = useNavigate();
  return () => {
    if (focusSearchField()) return;
    void navigate({ to: "/tasks" }).then(() => requestAnimationFrame(focusSearchField));
  };
}

function focusSearchField(): boolean {
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  field?.focus();
  field?.select();
  return field !== null;
}
