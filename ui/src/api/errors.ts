import type { Problem } from "@/api/model";

/** What the server refused or could not do, and what a person can do about it. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    detail: string,
    readonly field: string | null = null,
    readonly currentStatus: string | null = null,
  ) {
    super(detail);
  }

  get advice(): string {
    return ADVICE[this.code] ?? BY_STATUS[this.status] ?? "Try again; if it stays so, look at the server's log.";
  }

  /** Whether the same request may succeed in a moment. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

const ADVICE: Record<string, string> = {
  unreachable: "Check that the server runs and that you are online. This page tries again by itself.",
  page_not_loaded:
    "Check your connection. The dashboard is loaded anew once the server answers again, or when you try again.",
  task_not_found: "It may have been deleted, or cleaned up by age. Go back to the list.",
  task_not_failed: "Only failed tasks can be retried. Refresh to see what it is doing now.",
  task_not_terminal: "Only finished tasks can be deleted. Cancel it first.",
  forbidden: "Sign in with a token that may do this: an operator's or an admin's.",
  cross_site: "Open the dashboard itself and do it there.",
  host_not_allowed: "Start the server with --allow-host and the name you use, or use the name it knows.",
  too_many_streams: "Close other tabs of the dashboard; this one goes on with reading now and then.",
};

const BY_STATUS: Record<number, string> = {
  400: "Correct what is named, then try again.",
  401: "Sign in again.",
  403: "Sign in with a token that may do this.",
  404: "Check the address.",
  409: "It has changed meanwhile. Refresh and look again.",
  429: "Wait a moment, then try again.",
  503: "The database does not answer. `tasklib doctor` says more. This page tries again by itself.",
};

export function fromProblem(status: number, body: unknown): ApiError {
  if (isProblem(body)) {
    return new ApiError(status, body.code, body.title, body.detail, body.field ?? null, body.currentStatus ?? null);
  }
  return new ApiError(
    status,
    "unknown",
    `Error ${status}`,
    "The answer is not one of the server's own. Is a proxy between?",
  );
}

export function unreachable(): ApiError {
  return new ApiError(0, "unreachable", "No connection", "The server does not answer.");
}

function isProblem(body: unknown): body is Problem {
  return typeof body === "object" && body !== null && "code" in body && "detail" in body && "title" in body;
}
