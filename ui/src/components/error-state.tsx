import { CircleAlert, RotateCw } from "lucide-react";
import { ApiError } from "@/api/errors";
import { Button } from "@/components/button";
import { classes } from "@/components/classes";
import { SafeText } from "@/components/safe-text";

export interface ErrorStateProps {
  error: unknown;
  onRetry?: () => void;
  /** Inside a dialog or a card. */
  compact?: boolean;
}

/** What went wrong, in the server's words, and what to do. */
export function ErrorState({ error, onRetry, compact = false }: ErrorStateProps) {
  const [title, detail, advice] =
    error instanceof ApiError
      ? [error.title, error.message, error.advice]
      : ["Something went wrong in this page", String(error), "Load the page again. If it stays so, please report it."];
  return (
    <div
      role="alert"
      className={classes(
        "flex items-start gap-3 rounded-lg border border-failed/40 bg-failed-soft text-left text-text",
        compact ? "mt-3 p-3" : "m-4 p-4",
      )}
    >
      <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden="true" />
      <div className="min-w-0 break-words">
        <p className="font-semibold">{title}</p>
        <p>
          <SafeText text={detail} max={1000} />
        </p>
        <p className="mt-1 text-dim">{advice}</p>
        {onRetry && (
          <Button
            className="mt-3"
            size="small"
            icon={<RotateCw className="size-3.5" aria-hidden="true" />}
            onClick={onRetry}
          >
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}
