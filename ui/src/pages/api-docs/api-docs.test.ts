import { describe, expect, it } from "vitest";
import {
  type ApiDocument,
  answersOf,
  endpointsOf,
  grouped,
  matches,
  modelOf,
  refusalsOf,
} from "@/pages/api-docs/document";
import { curlOf, exampleOf, limitsOf, typeOf } from "@/pages/api-docs/words";
import served from "../../../../src/tasklib/server/openapi.json";

const document = served as unknown as ApiDocument;
const endpoints = endpointsOf(document);
const named = (id: string) => endpoints.find((endpoint) => endpoint.id === id) ?? expect.fail(id);

describe("the server's own file", () => {
  it("is shown whole", () => {
    const count = Object.values(document.paths).reduce((sum, each) => sum + Object.keys(each).length, 0);
    expect(endpoints).toHaveLength(count);
    expect(grouped(endpoints).flatMap(([, members]) => members)).toHaveLength(count);
    for (const endpoint of endpoints) expect(curlOf(document, endpoint, "http://h/")).toContain("curl -s 'http://h/");
  });

  it("is found by path, parameter and field of a model", () => {
    const found = (words: string) => endpoints.filter((each) => matches(document, each, words)).map(({ id }) => id);
    expect(found("delete older")).toContain("clean_up");
    expect(found("CURSOR tasks")).toContain("list_tasks");
    expect(found("idempotencyKey post")).toContain("submit_task");
    expect(found("no such words")).toEqual([]);
    expect(found("")).toHaveLength(endpoints.length);
  });

  it("makes examples that have what is required", () => {
    const command = curlOf(document, named("submit_task"), "http://127.0.0.1:8700/");
    expect(command).toMatch(/^curl -s 'http:\/\/127\.0\.0\.1:8700\/api\/tasks'/);
    expect(command).toContain('-H "Authorization: Bearer $TASKLIB_TOKEN"');
    expect(JSON.parse(/-d '(.*)'$/.exec(command)?.[1] ?? "")).toHaveProperty("type", "text");
    const deletion = curlOf(document, named("clean_up"), "http://h");
    expect(deletion).toContain("olderThan=2030-12-31T08%3A00%3A00Z' -X DELETE");
    expect(curlOf(document, named("is_alive"), "http://h")).not.toContain("Authorization");
    expect(refusalsOf(named("clean_up").operation).map(({ status }) => status)).toContain("401");
    expect(answersOf(named("submit_task").operation).map(({ status }) => status)).toEqual(["200", "201"]);
  });
});

describe("words", () => {
  const bare = { info: { version: "1" }, paths: {}, components: { schemas: {} } } as ApiDocument;

  it("tell types and limits", () => {
    const ids = {
      anyOf: [{ type: "array", items: { type: "string", format: "uuid" }, maxItems: 9 }, { type: "null" }],
    };
    expect(typeOf(bare, ids)).toBe("list of string (uuid) or null");
    expect(limitsOf(bare, ids)).toBe("at most 9 items");
    expect(limitsOf(bare, { type: "integer", minimum: 1, maximum: 100000, default: 0 })).toBe(
      "1 to 100,000; default 0",
    );
    expect(typeOf(bare, { enum: ["a", 2] })).toBe('"a", 2');
    expect(typeOf(bare, {})).toBe("any JSON");
  });

  it("end with models that hold themselves", () => {
    const schemas = { Node: { properties: { next: { $ref: "#/components/schemas/Node" } }, required: ["next"] } };
    const endless: ApiDocument = { ...bare, components: { schemas } };
    expect(JSON.stringify(exampleOf(endless, { $ref: "#/components/schemas/Node" })).length).toBeLessThan(200);
    expect(modelOf(endless, { items: { $ref: "#/components/schemas/Node" } })?.name).toBe("Node");
  });
});
