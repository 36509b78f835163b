import { createAuthentication } from "../../src/http/access/bearer-tokens.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { createDocument, forPrograms } from "../../src/http/server/openapi.ts";

/** The parts of JSON Schema that the service's document uses. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean" | "null";
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  /** Schemas of members by a regular expression for their names. */
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly examples?: readonly unknown[];
}

export interface DocumentedAnswer {
  /** Headers that every answer with this status has. */
  readonly headers: readonly string[];
  /** Other documented headers that an answer with this status may have. */
  readonly optional: readonly string[];
  /** Documented headers that an answer with this status must not have. */
  readonly foreign: readonly string[];
  /** Schemas of the body by content type; empty if the answer has no body. */
  readonly content: ReadonlyMap<string, Schema>;
}

export interface Operation {
  readonly id: string;
  readonly path: string;
  readonly method: string;
  /** Names of the parameters in the operation's path. */
  readonly parameters: readonly string[];
  readonly query: readonly string[];
  readonly headers: readonly string[];
  readonly body: { readonly type: string; readonly schema: Schema; readonly example: unknown } | undefined;
  readonly answers: ReadonlyMap<number, DocumentedAnswer>;
}

interface Content {
  readonly [type: string]: { readonly schema: RawSchema; readonly example?: unknown };
}

/** A schema, or a problem's own members combined with the shared ones. */
type RawSchema = Schema & { readonly allOf?: readonly (Schema & { readonly $ref?: string })[] };

interface OpenApi {
  readonly openapi: string;
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly required?: boolean }>>;
    readonly parameters: Readonly<Record<string, RawParameter>>;
    readonly responses: Readonly<Record<string, RawAnswer>> & { readonly problem: RawAnswer };
    readonly schemas: Readonly<Record<string, Schema>> & { readonly problem: Schema };
  };
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
}

interface RawHeaders {
  readonly [name: string]: { readonly $ref: string };
}

interface RawParameter {
  readonly name: string;
  readonly in: string;
}

interface RawOperation {
  readonly operationId: string;
  readonly parameters: readonly (RawParameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, RawAnswer | { readonly $ref: string }>>;
}

interface RawAnswer {
  readonly headers?: RawHeaders;
  readonly content: Content;
}

const HEADER_REF = "#/components/headers/";

const SCHEMA_REF = "#/components/schemas/";

const ANSWER_REF = "#/components/responses/";

const PARAMETER_REF = "#/components/parameters/";

/**
 * Returns all operations of the service's document, and those for the console's pages and forms, which are not in the
 * document.
 */
export function everyOperation(text: string): Operation[] {
  return [...operationsOf(text), ...operationsOf(consoleDocument())];
}

/** Returns an OpenAPI document of the console's endpoints. They are the same in every deployment. */
function consoleDocument(): string {
  const endpoints = describeEndpoints();
  const programs = new Set(forPrograms(endpoints));
  const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] }, Date.now);
  return JSON.stringify(
    createDocument(
      endpoints.filter((one) => !programs.has(one)),
      "",
      guards,
      "session",
    ),
  );
}

/** Every operation of an OpenAPI document. Throws if its version is not supported here. */
export function operationsOf(text: string): Operation[] {
  const document = parseDocument(text) as OpenApi;
  if (!document.openapi.startsWith("3.1.")) throw new Error(`OpenAPI ${document.openapi}`);
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => operationOf(document, path, method.toUpperCase(), raw)),
  );
}

/**
 * Parses an OpenAPI document, and puts the named schema in place of each reference. Only the reference to the members
 * that all problems share stays.
 */
export function parseDocument(text: string): unknown {
  const { components } = JSON.parse(text) as OpenApi;
  return JSON.parse(text, (_name, value) => findNamed(value, components.schemas));
}

/**
 * Replaces a reference by the schema that it names. A reference to the members that all problems share is left for
 * `merge`.
 */
function findNamed(value: unknown, schemas: OpenApi["components"]["schemas"]): unknown {
  const ref = (value as { readonly $ref?: unknown } | null)?.$ref;
  if (typeof ref !== "string" || ref === PROBLEM_REF || !ref.startsWith(SCHEMA_REF)) return value;
  const { [ref.slice(SCHEMA_REF.length)]: schema } = schemas;
  return JSON.parse(JSON.stringify(schema), (_name, part) => findNamed(part, schemas));
}

/** True if a path matches the operation's path, with a non-empty segment for each `{name}`. */
export function isAt({ path: template }: Pick<Operation, "path">, path: string): boolean {
  const [wanted, sent] = [template.split("/"), path.split("/")];
  const fits = (segment: string, at: number): boolean =>
    segment.startsWith("{") ? sent[at] !== "" : sent[at] === segment;
  return wanted.length === sent.length && wanted.every(fits);
}

/** The path of an endpoint in the document's notation. */
export function documentedPath(path: string): string {
  return path.replaceAll(/:([a-z_]+)/g, "{$1}");
}

function operationOf({ components }: OpenApi, path: string, method: string, raw: RawOperation): Operation {
  const parameters = raw.parameters.map((each) =>
    "$ref" in each ? components.parameters[each.$ref.slice(PARAMETER_REF.length)]! : each,
  );
  const named = (place: string) => parameters.filter((each) => each.in === place).map(({ name }) => name);
  const [body] = Object.entries(raw.requestBody?.content ?? {});
  // Ignores the answer `default`, so that each answer must be documented under its own status.
  const statuses = Object.entries(raw.responses).filter(([status]) => status !== "default");
  const answers = statuses.map(([status, given]) => {
    const { headers, content } = "$ref" in given ? components.responses[given.$ref.slice(ANSWER_REF.length)]! : given;
    const contents = Object.entries(content).map(([type, { schema }]) => [type, merge(schema, components)] as const);
    // The document lists the headers that every answer has only at the default answer.
    const all = { ...components.responses.problem.headers, ...headers };
    return [Number(status), { ...headersOf(components, all), content: new Map(contents) }] as const;
  });
  return {
    id: raw.operationId,
    path,
    method,
    parameters: named("path"),
    query: named("query"),
    headers: named("header"),
    body: body && { type: body[0], schema: body[1].schema, example: body[1].example },
    answers: new Map(answers),
  };
}

const PROBLEM_REF = "#/components/schemas/problem";

/** Adds the members that all problems share to the schema of one problem. */
function merge(schema: RawSchema, { schemas }: OpenApi["components"]): Schema {
  const [shared, own] = schema.allOf ?? [];
  if (own === undefined || shared?.$ref !== PROBLEM_REF) return schema;
  const required = [...new Set([...(schemas.problem.required ?? []), ...(own.required ?? [])])];
  return { ...own, properties: { ...schemas.problem.properties, ...own.properties }, required };
}

function headersOf(components: OpenApi["components"], headers: RawHeaders) {
  const names = Object.entries(headers).map(([name, { $ref }]) => {
    const header = $ref.startsWith(HEADER_REF) ? components.headers[$ref.slice(HEADER_REF.length)] : undefined;
    if (header === undefined) throw new Error(`no header ${$ref}`);
    return { name, isRequired: header.required === true };
  });
  return {
    headers: names.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    optional: names.filter(({ isRequired }) => !isRequired).map(({ name }) => name),
    foreign: Object.keys(components.headers).filter((name) => !Object.hasOwn(headers, name)),
  };
}
