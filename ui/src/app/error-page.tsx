import type { ErrorComponentProps } from "@tanstack/react-router";
import { ErrorState } from "@/components/error-state";
import { usePageTitle } from "@/hooks/use-page-title";

/** In place of a page that broke. A chunk that is gone means that the server has a newer dashboard. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  usePageTitle("Error");
  const outdated = /dynamically imported module|module script failed/i.test(String(error));
  return (
    <>
      <h1 className="sr-only">Error</h1>
      <ErrorState
        error={outdated ? new Error("This page is older than the server. Load it again.") : error}
        onRetry={outdated ? () => location.reload() : reset}
      />
    </>
  );
}
