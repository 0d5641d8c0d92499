import { act, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

// As Chromium has it: whoever reads `matches` after a change and before the next frame is the last to hear of it.
class MediaQuery extends EventTarget {
  preference = false;
  private told = false;

  get matches(): boolean {
    this.told = this.preference;
    return this.told;
  }

  frame(): void {
    if (this.told !== this.preference) this.dispatchEvent(new Event("change"));
  }
}

test("a page that renders between the system's change and the browser's word of it follows all the same", async () => {
  const system = new MediaQuery();
  vi.stubGlobal("matchMedia", () => system);
  vi.resetModules();
  const { useTheme } = await import("./use-theme");
  const Shown = () => <p>{useTheme().dark ? "dark" : "light"}</p>;
  const { rerender } = render(<Shown />);
  expect(screen.getByText("light")).toBeTruthy();

  system.preference = true;
  rerender(<Shown />);
  act(() => system.frame());

  expect(document.documentElement.classList.contains("dark")).toBe(true);
  expect(screen.getByText("dark")).toBeTruthy();
});
