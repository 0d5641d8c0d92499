import { expect, test } from "vitest";
import { rateChoiceOf, rateFault, rateShown, rateToSend } from "@/app/rate-choice";

test.each([
  [{ operatorRateLimit: null, defaultRateLimit: 5 }, "5/s", "code", null],
  [{ operatorRateLimit: 2.5, defaultRateLimit: 5 }, "2.5/s", "operator", 2.5],
  [{ operatorRateLimit: 0, defaultRateLimit: 5 }, "none", "operator", 0],
  [{ operatorRateLimit: null, defaultRateLimit: null }, "none", null, null],
])("%o holds as it is shown, and saving it changes nothing", (control, text, by, sent) => {
  expect(rateShown(control)).toEqual({ text, by });
  expect(rateFault(rateChoiceOf(control))).toBeNull();
  expect(rateToSend(rateChoiceOf(control))).toBe(sent);
});

test.each(["", "0", "-1", "x", "1e7", "Infinity"])("a rate of %j is refused", (rate) => {
  expect(rateFault({ master: "operator", rate })).not.toBeNull();
  expect(rateFault({ master: "code", rate })).toBeNull();
});
