import { render } from "@testing-library/react";
import { expect, it } from "vitest";
import { SafeText } from "@/components/safe-text";
import { escapeText } from "@/text/escape";

it("shows markup as text", () => {
  const hostile = "<img src=x onerror=alert(1)>&amp;";
  const { container } = render(<SafeText text={hostile} />);
  expect(container.textContent).toBe(hostile);
  expect(container.querySelector("img")).toBeNull();
});

it.each([
  ["a\u202eb", "a\\u202eb"],
  ["\u0000\u001b[31m", "\\u0000\\u001b[31m"],
  ["\u200b\ufeff\u2066", "\\u200b\\ufeff\\u2066"],
  ["\ud800x", "\\ud800x"],
  ["x\udc00", "x\\udc00"],
  ["line\nnext\t.", "line\\nnext\\t."],
])("shows %j escaped", (text, shown) => {
  const { container } = render(<SafeText text={text} />);
  expect(container.textContent).toBe(shown);
  expect(escapeText(text)).toBe(shown);
});

it("leaves ordinary text of all languages alone", () => {
  const text = "zażółć 日本語 العربية 👩‍💻 é";
  expect(escapeText(text)).toBe(text);
});

it("keeps line breaks where they are wanted", () => {
  const { container } = render(<SafeText text={"one\ntwo\u202e"} multiline />);
  expect(container.textContent).toBe("one\ntwo\\u202e");
});

it("cuts what is too long", () => {
  const { container } = render(<SafeText text={"x".repeat(50)} max={10} />);
  expect(container.textContent).toBe(`${"x".repeat(10)}…`);
});
