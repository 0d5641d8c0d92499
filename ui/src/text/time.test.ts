import { expect, it } from "vitest";
import { duration, relative } from "@/text/time";

it.each([
  [-5, "0 ms"],
  [0, "0 ms"],
  [850.4, "850 ms"],
  [999.7, "1.0 s"],
  [1234, "1.2 s"],
  [9_949, "9.9 s"],
  [9_951, "10 s"],
  [59_499, "59 s"],
  [59_999, "1m"],
  [200_000, "3m 20s"],
  [7_500_000, "2h 5m"],
  [273_600_000, "3d 4h"],
])("%d ms is %s", (ms, text) => expect(duration(ms)).toBe(text));

it.each([
  [-500, "just now"],
  [-12_000, "12s ago"],
  [-3 * 60_000, "3m ago"],
  [-26 * 3_600_000, "1d ago"],
  [900, "in 1s"],
  [5_000, "in 5s"],
  [2 * 3_600_000, "in 2h"],
])("%d ms from now is %s", (offset, text) => expect(relative(1e12 + offset, 1e12)).toBe(text));
