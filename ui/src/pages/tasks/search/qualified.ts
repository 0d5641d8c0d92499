import type { Qualifier } from "@/pages/tasks/search/filter";
import { quote } from "@/pages/tasks/search/tokens";

/** The search that other pages lead to: `qualified({ type: "send mail", status: "failed" })`. */
export function qualified(given: Partial<Record<Qualifier, string>>): string {
  return Object.entries(given)
    .map(([name, value]) => `${name}:${quote(value)}`)
    .join(" ");
}
