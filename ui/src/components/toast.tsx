import { CircleAlert, CircleCheck, X } from "lucide-react";
import { useEffect, useSyncExternalStore } from "react";
import { ApiError } from "@/api/errors";
import { IconButton } from "@/components/button";
import { SafeText } from "@/components/safe-text";

interface Toast {
  id: number;
  title: string;
  detail: string | null;
  failed: boolean;
}

const SHOWN_MS = 6000;
const MOST = 4;
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let latest = 0;

function put(next: readonly Toast[]): void {
  toasts = next.slice(-MOST);
  for (const listener of listeners) listener();
}

/** Says that something was done. Goes away by itself. */
export function showToast(title: string, detail: string | null = null): void {
  latest += 1;
  put([...toasts, { id: latest, title, detail, failed: false }]);
}

/** Says what went wrong and what to do. Stays until it is closed. */
export function showError(error: unknown): void {
  latest += 1;
  const [title, detail] =
    error instanceof ApiError ? [error.message, error.advice] : ["Something went wrong in this page.", String(error)];
  put([...toasts, { id: latest, title, detail, failed: true }]);
}

function close(id: number): void {
  put(toasts.filter((toast) => toast.id !== id));
}

/** The region is always there: screen readers announce only what is added to one they know. */
export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => toasts,
  );
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed right-4 bottom-20 z-50 flex w-[min(24rem,calc(100vw-2rem))] flex-col gap-2 md:bottom-4"
    >
      {shown.map((toast) => (
        <ToastCard key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastCard({ toast }: { toast: Toast }) {
  useEffect(() => {
    if (toast.failed) return;
    const timer = setTimeout(() => close(toast.id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [toast]);
  return (
    <div className="pointer-events-auto flex items-start gap-2 rounded-lg border bg-surface p-3 shadow-lg">
      {toast.failed ? (
        <CircleAlert className="mt-0.5 size-4 shrink-0 text-failed" aria-hidden="true" />
      ) : (
        <CircleCheck className="mt-0.5 size-4 shrink-0 text-completed" aria-hidden="true" />
      )}
      <div className="min-w-0 grow break-words">
        <p className="font-medium">
          {toast.failed && <span className="sr-only">Error: </span>}
          <SafeText text={toast.title} />
        </p>
        {toast.detail && (
          <p className="text-dim">
            <SafeText text={toast.detail} />
          </p>
        )}
      </div>
      <IconButton label="Close message" size="small" onClick={() => close(toast.id)}>
        <X className="size-3.5" aria-hidden="true" />
      </IconButton>
    </div>
  );
}
