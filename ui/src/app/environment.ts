/** What the name of an environment says about how careful one has to be. */
export type EnvironmentKind = "production" | "development" | "other";

export function kindOf(environment: string): EnvironmentKind {
  if (/\b(prod|production|live)\b/i.test(environment)) return "production";
  return /\b(dev|development|local|test|demo)\b/i.test(environment) ? "development" : "other";
}
