/** The one way to the server: typed by its OpenAPI file, exact with numbers, errors as ApiError. */
import createClient from "openapi-fetch";
import { fromProblem, unreachable } from "@/api/errors";
import { parse, plain } from "@/api/exact";
import { addressOf, BASE, goToLogin } from "@/api/place";
import type { paths } from "@/api/schema";

export const client = createClient<paths>({
  baseUrl: BASE.href.replace(/\/$/, ""),
  fetch: exactFetch,
  querySerializer: { array: { style: "form", explode: true } },
});

/** `call(client.GET(...))`: the data, or an ApiError thrown. */
export async function call<T>(request: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await request;
  if (!response.ok) throw fromProblem(response.status, error);
  return data as T;
}

/** A file of the server that its OpenAPI file does not list. */
export async function read<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await exactFetch(new Request(addressOf(path), { signal }));
  const data: unknown = await response.json();
  if (!response.ok) throw fromProblem(response.status, data);
  return data as T;
}

/** The latest answers with their tags, so that what has not changed is not sent again. In memory and not in the
 * browser's cache: nothing of the queue is left on a disk. */
const kept = new Map<string, { tag: string; text: string }>();
const KEPT = 20;

async function exactFetch(request: Request): Promise<Response> {
  const had = request.method === "GET" ? kept.get(request.url) : undefined;
  if (had) request.headers.set("If-None-Match", had.tag);
  const answer = await fetch(request).catch((error: unknown) => {
    throw error instanceof DOMException && error.name === "AbortError" ? error : unreachable();
  });
  if (answer.status === 401) goToLogin();
  if (answer.status === 204) return answer;
  const unchanged = answer.status === 304 && had !== undefined;
  const text = unchanged ? had.text : await answer.text();
  const tag = answer.headers.get("ETag");
  if (tag && request.method === "GET") keep(request.url, tag, text);
  const headers = new Headers(answer.headers);
  headers.set("Content-Length", String(text.length)); // openapi-fetch would parse an answer without one by itself
  const read = new Response(text, { status: unchanged ? 200 : answer.status, headers });
  read.json = async () => plain(parse(text));
  return read;
}

function keep(url: string, tag: string, text: string): void {
  kept.delete(url); // goes to the end
  kept.set(url, { tag, text });
  for (const oldest of [...kept.keys()].slice(0, -KEPT)) kept.delete(oldest);
}
