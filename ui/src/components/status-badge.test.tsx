import { render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { StatusBadge } from "@/components/status-badge";

it.each([
  ["pending", null, "Pending", "text-pending"],
  ["processing", null, "Processing", "text-processing"],
  ["completed", null, "Completed", "text-completed"],
  ["failed", null, "Failed", "text-failed"],
  ["failed", "2026-01-01T00:00:00Z", "Failed · retry waiting", "text-failed"],
  ["cancelled", null, "Cancelled", "text-cancelled"],
  ["from the future", null, "from the future", "text-cancelled"],
])("%s (retry at %s) reads %s", (status, nextRetryAt, label, colour) => {
  const { container } = render(<StatusBadge status={status} nextRetryAt={nextRetryAt} />);
  expect(screen.getByText(label)).toBeTruthy();
  expect(container.querySelector(`.${colour}`)).toBeTruthy();
  expect(container.querySelector("svg")?.getAttribute("aria-hidden")).toBe("true");
});

it("says for how many tasks it waits, and that a flow runs", () => {
  render(<StatusBadge status="pending" waits={2} />);
  render(<StatusBadge status="running" />);
  expect(screen.getByText("Pending · waits for 2")).toBeTruthy();
  expect(screen.getByText("Running")).toBeTruthy();
});
