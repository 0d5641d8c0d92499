import { expect, test } from "vitest";
import type { Stats } from "@/api/model";
import { changed } from "@/hooks/stats-changes";

const totals = { pending: 3, processing: 0, completed: 0, failed: 0, cancelled: 0, waiting: 0 };
const counts = { ...totals, pending: 1, handled: true, oldestDueSeconds: null };

test("types that changed replace those that were, the others stay, and null removes one", () => {
  const had: Stats = { ...totals, byType: { same: counts, moved: counts, gone: counts } };
  const moved = { ...counts, pending: 7 };
  const now = changed(had, { ...totals, pending: 9, byType: { moved, gone: null, fresh: counts } });
  expect(now).toEqual({ ...totals, pending: 9, byType: { same: counts, moved, fresh: counts } });
});
