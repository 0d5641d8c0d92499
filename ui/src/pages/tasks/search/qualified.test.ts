import { expect, test } from "vitest";
import { parse } from "@/pages/tasks/search/filter";
import { qualified } from "@/pages/tasks/search/qualified";

test.each(["send_email", "a b", 'say "hi"', "back\\slash", "a:b", "x\u202ey", "line\nbreak"])(
  "the list reads %j as it was meant",
  (type) => {
    const { filter, problems } = parse(qualified({ type, status: "failed", worker: type }));
    expect(problems).toEqual([]);
    expect([filter.types, filter.statuses, filter.worker]).toEqual([[type], ["failed"], type]);
  },
);
