import { act, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { learnServerTime } from "@/api/clock";
import { Duration, RelativeTime } from "@/components/times";

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse("2026-01-01T12:00:00Z") });
});

afterEach(() => {
  learnServerTime(new Date().toISOString(), Date.now());
  vi.useRealTimers();
});

function pass(seconds: number) {
  act(() => {
    vi.advanceTimersByTime(seconds * 1000);
  });
}

it("counts on, and tells machines the exact time", () => {
  render(<RelativeTime at="2026-01-01T11:59:50.123456Z" />);
  const time = screen.getByText("10s ago");
  expect(time.getAttribute("datetime")).toBe("2026-01-01T11:59:50.123Z");
  expect(time.getAttribute("title")).toContain("2026");
  pass(65);
  expect(time.textContent).toBe("1m ago");
});

it("counts down to what is to come", () => {
  render(<RelativeTime at="2026-01-01T12:00:05Z" />);
  const time = screen.getByText("in 5s");
  pass(3);
  expect(time.textContent).toBe("in 2s");
});

it("goes by the server's clock", () => {
  learnServerTime("2026-01-01T13:00:00Z", Date.now());
  render(<RelativeTime at="2026-01-01T12:59:00Z" />);
  expect(screen.getByText("1m ago")).toBeTruthy();
});

it("shows a dash for no time", () => {
  const { container } = render(
    <>
      <RelativeTime at={null} />
      <RelativeTime at="nonsense" />
    </>,
  );
  expect(container.textContent).toBe("––");
});

it("measures what is over, and what still runs", () => {
  const { container } = render(
    <>
      <Duration from="2026-01-01T11:59:58.500Z" to="2026-01-01T12:00:00Z" /> <Duration from="2026-01-01T11:59:50Z" />
    </>,
  );
  expect(container.textContent).toBe("1.5 s 10 s");
  pass(60);
  expect(container.textContent).toBe("1.5 s 1m 10s");
});

it("stops its timer when nothing ticks", () => {
  const { unmount } = render(<RelativeTime at="2026-01-01T12:00:00Z" />);
  expect(vi.getTimerCount()).toBe(1);
  unmount();
  expect(vi.getTimerCount()).toBe(0);
});
