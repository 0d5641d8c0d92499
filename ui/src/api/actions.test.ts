import { afterEach, expect, it, vi } from "vitest";
import { actOnMatching } from "@/api/actions";

afterEach(() => vi.unstubAllGlobals());

it("goes on behind the server's cursor until there is none, also after parts in which nothing was found", async () => {
  const next = ["a", "b", null];
  const sent: unknown[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push((await request.json()).cursor);
    const cursor = next[sent.length - 1];
    const done = sent.length === 2 ? 0 : 5;
    const more = cursor !== null;
    return Response.json({ matched: done, matchedCapped: more, done, more, nextCursor: cursor, dryRun: false });
  });
  const progress: number[] = [];
  expect(await actOnMatching("retry", { error: "x" }, (done) => progress.push(done))).toBe(10);
  expect(sent).toEqual([null, "a", "b"]);
  expect(progress).toEqual([5, 5, 10]);
});
