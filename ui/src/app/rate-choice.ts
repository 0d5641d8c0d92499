/** A rate limit has three possible masters: nobody, the code, and the operator, who wins. */
import type { Control } from "@/api/model";

export type Master = "code" | "none" | "operator";

export interface RateChoice {
  master: Master;
  /** As typed. */
  rate: string;
}

type Rates = Pick<Control, "operatorRateLimit" | "defaultRateLimit">;

const MOST = 1_000_000;

export function rateChoiceOf({ operatorRateLimit }: Rates): RateChoice {
  if (operatorRateLimit == null) return { master: "code", rate: "" };
  return operatorRateLimit === 0
    ? { master: "none", rate: "" }
    : { master: "operator", rate: String(operatorRateLimit) };
}

export function rateFault({ master, rate }: RateChoice): string | null {
  if (master !== "operator") return null;
  const value = Number(rate);
  if (rate.trim() === "" || !Number.isFinite(value) || value <= 0)
    return "Give a number above 0; 0.5 is one in two seconds.";
  return value > MOST ? "Give at most 1,000,000 a second." : null;
}

/** As the API takes it: 0 is no limit, null gives the word back to the code. */
export function rateToSend({ master, rate }: RateChoice): number | null {
  return master === "code" ? null : master === "none" ? 0 : Number(rate);
}

/** "5/s", and who says so. */
export function rateShown(control: Rates): { text: string; by: "operator" | "code" | null } {
  const { operatorRateLimit: operator, defaultRateLimit: code } = control;
  if (operator != null) return { text: operator === 0 ? "none" : `${operator}/s`, by: "operator" };
  return code ? { text: `${code}/s`, by: "code" } : { text: "none", by: null };
}
