import { render, screen } from "@testing-library/react";
import { userEvent } from "@testing-library/user-event";
import { expect, it, vi } from "vitest";
import { parse } from "@/api/exact";
import { JsonViewer } from "@/components/json-viewer";
import { TooltipProvider } from "@/components/tooltip";

function show(json: string, depth?: number) {
  return render(
    <TooltipProvider>
      <JsonViewer value={parse(json)} label="payload" {...(depth === undefined ? {} : { depth })} />
    </TooltipProvider>,
  );
}

it("shows big integers and floats to the digit", () => {
  show('{"id": 9007199254740993, "price": 1.50}');
  expect(screen.getByText("9007199254740993")).toBeTruthy();
  expect(screen.getByText("1.50")).toBeTruthy();
});

it("shows hostile text as text", () => {
  const { container } = show('{"<b>k</b>": "<img src=x onerror=alert(1)>\\u202e"}');
  expect(container.querySelector("img, b")).toBeNull();
  expect(container.textContent).toContain("<img src=x onerror=alert(1)>\\u202e");
});

it("opens and closes with the keyboard", async () => {
  const user = userEvent.setup();
  show('{"deep": {"inner": "found"}}', 1);
  expect(screen.queryByText('"found"')).toBeNull();
  const deep = screen.getByRole("button", { name: /"deep"/ });
  expect(deep.getAttribute("aria-expanded")).toBe("false");
  expect(deep.textContent).toContain("1 key");
  deep.focus();
  await user.keyboard("{Enter}");
  expect(screen.getByText('"found"')).toBeTruthy();
  await user.keyboard(" ");
  expect(screen.queryByText('"found"')).toBeNull();
});

it("expands and collapses everything", async () => {
  const user = userEvent.setup();
  show('{"a": {"b": {"c": {"d": "found"}}}}', 1);
  await user.click(screen.getByRole("button", { name: "Expand all of payload" }));
  expect(screen.getByText('"found"')).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Collapse payload" }));
  expect(screen.queryByText('"a"')).toBeNull();
});

it("copies the JSON as it came", async () => {
  const user = userEvent.setup();
  const written = vi.spyOn(navigator.clipboard, "writeText");
  show('{"n": 12345678901234567890}');
  await user.click(screen.getByRole("button", { name: "Copy payload" }));
  expect(written).toHaveBeenCalledWith('{\n  "n": 12345678901234567890\n}');
  expect(await screen.findByRole("button", { name: "Copied" })).toBeTruthy();
});

it("copies one value: text as it is, the rest as JSON", async () => {
  const user = userEvent.setup();
  const written = vi.spyOn(navigator.clipboard, "writeText");
  show('{"text": "plain \\"words\\"", "list": [1.0, 2]}');
  const [text, list] = screen.getAllByRole("button", { name: "Copy value" });
  await user.click(text as HTMLElement);
  expect(written).toHaveBeenLastCalledWith('plain "words"');
  await user.click(list as HTMLElement);
  expect(written).toHaveBeenLastCalledWith("[\n  1.0,\n  2\n]");
});

it("opens to a level", async () => {
  const user = userEvent.setup();
  show('{"a": {"b": {"c": {"d": "found"}}}}', 1);
  const levels = screen.getByRole("combobox", { name: "Levels of payload shown" });
  await user.selectOptions(levels, "3 levels");
  expect(screen.getByText('"c"')).toBeTruthy();
  expect(screen.queryByText('"d"')).toBeNull();
  await user.selectOptions(levels, "Closed");
  expect(screen.queryByText('"a"')).toBeNull();
  await user.selectOptions(levels, "All levels");
  expect(screen.getByText('"found"')).toBeTruthy();
});

it("shows the whole text raw, hostile characters escaped", async () => {
  const user = userEvent.setup();
  const { container } = show(`{"list": ${JSON.stringify(Array.from({ length: 150 }, (_, n) => n))}, "s": "\u202e<b>"}`);
  await user.click(screen.getByRole("button", { name: "Raw payload" }));
  expect(container.querySelector("pre")?.textContent).toContain("149\n");
  expect(container.querySelector("pre")?.textContent).toContain('"s": "\\u202e<b>"');
  expect(container.querySelector("b")).toBeNull();
});

it("shows long lists and strings in parts", async () => {
  const user = userEvent.setup();
  show(JSON.stringify([...Array.from({ length: 250 }, (_, n) => `item ${n}`)]));
  expect(screen.getByText('"item 99"')).toBeTruthy();
  expect(screen.queryByText('"item 100"')).toBeNull();
  await user.click(screen.getByRole("button", { name: /Show 100 more of 250/ }));
  expect(screen.getByText('"item 199"')).toBeTruthy();
});

it.each(["null", "[]", "{}", "true", '"text"', "3"])("shows %s", (json) => {
  expect(show(json).container.textContent).toContain(json);
});
