import { expect, it } from "vitest";
import { kindOf } from "@/app/environment";

it.each([
  ["production", "production"],
  ["Prod EU", "production"],
  ["live", "production"],
  ["eu-prod-2", "production"],
  ["dev", "development"],
  ["local", "development"],
  ["staging", "other"],
  ["delivery", "other"],
  ["reproduction", "other"],
])("%s is %s", (name, kind) => expect(kindOf(name)).toBe(kind));
