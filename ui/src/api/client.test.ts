import { afterEach, expect, test, vi } from "vitest";
import { call, client } from "@/api/client";

afterEach(() => vi.unstubAllGlobals());

test("what has not changed is not sent again", async () => {
  const asked: (string | null)[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const tag = request.headers.get("If-None-Match");
    asked.push(tag);
    if (tag === 'W/"1"') return new Response(null, { status: 304, headers: { ETag: 'W/"1"' } });
    return new Response('{"types":[]}', { headers: { ETag: 'W/"1"', "Content-Type": "application/json" } });
  });
  const first = await call(client.GET("/api/types"));
  expect(await call(client.GET("/api/types"))).toEqual(first);
  expect(first).toEqual({ types: [] });
  expect(asked).toEqual([null, 'W/"1"']);
});
