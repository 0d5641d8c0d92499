import type { ErrorComponentProps } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { ApiError } from "@/api/errors";
import { ErrorState } from "@/components/error-state";
import { useLive } from "@/hooks/use-live";
import { usePageTitle } from "@/hooks/use-page-title";

/** The script of a page is not there. */
export class PageNotLoaded extends ApiError {
  constructor() {
    const reason = "The server does not answer, or it has a newer dashboard than this one.";
    super(0, "page_not_loaded", "This page could not be loaded", reason);
  }
}

/** In place of a page that broke. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  usePageTitle("Error");
  useLoadedAgain(error instanceof PageNotLoaded);
  return (
    <>
      <h1 className="sr-only">Error</h1>
      <ErrorState error={error} onRetry={error instanceof PageNotLoaded ? () => location.reload() : reset} />
    </>
  );
}

/** The server is back: it may have another dashboard now, so all of it is loaded. Never while it has been there all the
 * time, which would load again and again. */
function useLoadedAgain(wanted: boolean): void {
  const { state } = useLive();
  const gone = useRef(false);
  useEffect(() => {
    if (state === "connecting") gone.current = true;
    else if (wanted && gone.current && state === "live") location.reload();
  }, [state, wanted]);
}
