import { cleanup, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import type { TaskDetail } from "@/api/model";
import { Details } from "@/pages/task/details";

const TASK = {
  status: "completed",
  attempts: 1,
  maxAttempts: 3,
  createdAt: "2026-01-01T12:00:00Z",
  runAfter: null,
  lastAttemptAt: "2026-01-01T12:00:00Z",
  nextRetryAt: null,
  completedAt: "2026-01-01T12:00:00.082Z",
  timeoutSeconds: null,
  workerId: null,
  lastWorkerId: null,
  runMs: null,
  uniqueKey: null,
  lockedUntil: null,
  cancelRequestedAt: null,
  idempotencyKey: null,
  tags: {},
  history: [],
} as unknown as TaskDetail;

it("does not call the time from claim to end the duration of the handler", () => {
  render(<Details task={TASK} />);
  expect(screen.getByText("Claimed for").nextElementSibling?.textContent).toBe("82 ms");
  expect(screen.queryByText("Ran for")).toBeNull();
  cleanup();
  render(<Details task={{ ...TASK, runMs: 1 }} />);
  expect(screen.getByText("Ran for").nextElementSibling?.textContent).toBe("1 ms");
});

it("says when it was scheduled for, which a retry is not", () => {
  const scheduled = { ...TASK, runAfter: "2026-01-01T11:59:00Z" };
  const { unmount } = render(<Details task={scheduled} />);
  expect(screen.getByText("Scheduled")).toBeTruthy();
  unmount();
  render(<Details task={{ ...TASK, status: "pending", completedAt: null, runAfter: "2026-01-01T12:01:00Z" }} />);
  expect(screen.queryByText("Scheduled")).toBeNull();
});
