import type { ErrorComponentProps } from "@tanstack/react-router";
import { ApiError } from "@/api/errors";
import { ErrorState } from "@/components/error-state";
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
  return (
    <>
      <h1 className="sr-only">Error</h1>
      <ErrorState error={error} onRetry={error instanceof PageNotLoaded ? () => location.reload() : reset} />
    </>
  );
}
