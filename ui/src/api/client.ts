/** The one way to the server: typed by its OpenAPI file, exact with numbers, errors as ApiError. */
import createClient from "openapi-fetch";
import { fromProblem, unreachable } from "@/api/errors";
import { parse, plain } from "@/api/exact";
import { BASE, goToLogin } from "@/api/place";
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

async function exactFetch(request: Request): Promise<Response> {
  const answer = await fetch(request).catch((error: unknown) => {
    throw error instanceof DOMException && error.name === "AbortError" ? error : unreachable();
  });
  if (answer.status === 401) goToLogin();
  if (answer.status === 204) return answer;
  const text = await answer.text();
  const headers = new Headers(answer.headers);
  headers.set("Content-Length", String(text.length)); // openapi-fetch would parse an answer without one by itself
  const read = new Response(text, { status: answer.status, headers });
  read.json = async () => plain(parse(text));
  return read;
}
