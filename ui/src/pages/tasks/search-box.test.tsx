import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { TooltipProvider } from "@/components/tooltip";
import { SearchBox } from "@/pages/tasks/search-box";

const KNOWN = { types: ["mail.send", "resend"], workers: [], tags: [] };

function show(text = "") {
  const onSearch = vi.fn();
  const box = (shown: string) => (
    <TooltipProvider>
      <SearchBox text={shown} known={KNOWN} onSearch={onSearch} invalid={false} describedBy="notes" />
    </TooltipProvider>
  );
  const { rerender } = render(box(text));
  return {
    onSearch,
    field: screen.getByRole("combobox") as HTMLInputElement,
    change: (to: string) => rerender(box(to)),
  };
}

// jsdom has no layout.
Element.prototype.scrollIntoView = () => {};

it("searches on Enter, not while somebody types", async () => {
  const { onSearch, field } = show();
  await userEvent.type(field, " status:failed ");
  expect(onSearch).not.toHaveBeenCalled();
  await userEvent.keyboard("{Enter}");
  expect(onSearch).toHaveBeenCalledExactlyOnceWith("status:failed");
  expect(field.getAttribute("aria-expanded")).toBe("false");
});

it("completes by arrows and Enter, first the qualifier, then the value", async () => {
  const { onSearch, field } = show();
  await userEvent.type(field, "ty{ArrowDown}{Enter}");
  expect(field.value).toBe("type:");
  expect(onSearch).not.toHaveBeenCalled();
  await userEvent.keyboard("{ArrowDown}{ArrowDown}");
  expect(field.getAttribute("aria-activedescendant")).toBe(screen.getByRole("option", { selected: true }).id);
  await userEvent.keyboard("{Enter}");
  expect(onSearch).toHaveBeenCalledExactlyOnceWith("type:resend");
});

it("closes the list with Escape and keeps the text", async () => {
  const { field } = show();
  await userEvent.type(field, "type:{Escape}");
  expect(field.getAttribute("aria-expanded")).toBe("false");
  expect(field.value).toBe("type:");
});

it("follows a search that was changed elsewhere", () => {
  const { field, change } = show("status:failed");
  change("status:pending");
  expect(field.value).toBe("status:pending");
});
