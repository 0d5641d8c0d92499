/** The server's OpenAPI file, as far as the page shows it. */
import { queryOptions } from "@tanstack/react-query";
import { read } from "@/api/client";

export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  allOf?: readonly Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  pattern?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  exclusiveMaximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

export interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: Schema;
}

interface Content {
  content?: Record<string, { schema?: Schema }>;
}

export interface Operation {
  operationId: string;
  description?: string;
  tags?: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: Content;
  responses: Record<string, Content & { description: string }>;
  security?: readonly unknown[];
}

export interface ApiDocument {
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

/** One thing that can be asked of the server. */
export interface Endpoint {
  id: string;
  method: string;
  path: string;
  group: string;
  operation: Operation;
}

export const documentQuery = queryOptions({
  queryKey: ["openapi"],
  queryFn: ({ signal }) => read<ApiDocument>("openapi.json", signal),
  staleTime: Number.POSITIVE_INFINITY,
});

const METHODS = ["get", "post", "put", "patch", "delete"];

export function endpointsOf(document: ApiDocument): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    METHODS.flatMap((method) => {
      const operation = operations[method];
      if (!operation) return [];
      const group = operation.tags?.[0] ?? "other";
      return [{ id: operation.operationId, method: method.toUpperCase(), path, group, operation }];
    }),
  );
}

/** By their subject, in the order in which subjects come first. */
export function grouped(endpoints: readonly Endpoint[]): [string, Endpoint[]][] {
  const groups = new Map<string, Endpoint[]>();
  for (const endpoint of endpoints) groups.set(endpoint.group, [...(groups.get(endpoint.group) ?? []), endpoint]);
  return [...groups];
}

export function nameOf(schema: Schema): string | null {
  return schema.$ref?.split("/").pop() ?? null;
}

/** The schema behind a reference. */
export function resolve(document: ApiDocument, schema: Schema): Schema {
  const name = nameOf(schema);
  return name === null ? schema : (document.components.schemas[name] ?? {});
}

/** A model whose fields can be shown: the one that a type is about, behind lists, "or null" and references. */
export function modelOf(document: ApiDocument, schema: Schema): { name: string; schema: Schema } | null {
  const inner = schema.items ?? schema.anyOf?.find((choice) => modelOf(document, choice) !== null) ?? schema.allOf?.[0];
  if (inner) return modelOf(document, inner);
  const found = resolve(document, schema);
  return found.properties ? { name: nameOf(schema) ?? found.title ?? "object", schema: found } : null;
}

export function bodyOf(operation: Operation): Schema | null {
  return schemaOf(operation.requestBody);
}

export interface Answer {
  status: string;
  /** Of the media type; null: it has no body. */
  kind: string | null;
  schema: Schema | null;
}

/** What it answers when all went well. */
export function answersOf(operation: Operation): Answer[] {
  return Object.entries(operation.responses)
    .filter(([status]) => status.startsWith("2"))
    .map(([status, answer]) => ({
      status,
      kind: Object.keys(answer.content ?? {})[0] ?? null,
      schema: schemaOf(answer),
    }));
}

/** How it says that something went wrong. */
export function refusalsOf(operation: Operation): { status: string; text: string }[] {
  return Object.entries(operation.responses)
    .filter(([status]) => !status.startsWith("2"))
    .map(([status, { description }]) => ({ status, text: description }));
}

function schemaOf(content: Content | undefined): Schema | null {
  return Object.values(content?.content ?? {})[0]?.schema ?? null;
}

/** Whether all the words are in what the endpoint says of itself, its parameters and the fields of its models. */
export function matches(document: ApiDocument, endpoint: Endpoint, search: string): boolean {
  const { operation } = endpoint;
  const models = [bodyOf(operation), ...answersOf(operation).map(({ schema }) => schema)].map(
    (each) => each && modelOf(document, each),
  );
  const text = [
    `${endpoint.method} ${endpoint.path} ${endpoint.id} ${endpoint.group} ${operation.description ?? ""}`,
    ...(operation.parameters ?? []).map(({ name, description }) => `${name} ${description ?? ""}`),
    ...models.map((model) => (model ? `${model.name} ${Object.keys(model.schema.properties ?? {}).join(" ")}` : "")),
  ]
    .join(" ")
    .toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}
