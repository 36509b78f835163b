/** The parts of JSON Schema that the service's document uses. */
export interface Schema {
  readonly type?: "object" | "array" | "string" | "integer" | "number" | "boolean" | "null";
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly examples?: readonly unknown[];
}

export interface DocumentedAnswer {
  /** That every such answer has. */
  readonly headers: readonly string[];
  /** By content type; none: no body. */
  readonly content: ReadonlyMap<string, Schema>;
}

export interface Operation {
  readonly path: string;
  readonly method: string;
  readonly query: readonly string[];
  readonly headers: readonly string[];
  readonly body: { readonly type: string; readonly schema: Schema } | undefined;
  readonly answers: ReadonlyMap<number, DocumentedAnswer>;
}

interface Content {
  readonly [type: string]: { readonly schema: Schema };
}

interface OpenApi {
  readonly openapi: string;
  readonly components: { readonly headers: Readonly<Record<string, { readonly required?: boolean }>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, RawOperation>>>>;
}

interface RawOperation {
  readonly parameters: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<
    Record<string, { readonly headers: Readonly<Record<string, { readonly $ref: string }>>; readonly content: Content }>
  >;
}

const HEADER_REF = "#/components/headers/";

/** Every operation of an OpenAPI document. Throws when it is none that this reader understands. */
export function operationsOf(text: string): Operation[] {
  const document = JSON.parse(text) as OpenApi;
  if (!document.openapi.startsWith("3.1.")) throw new Error(`OpenAPI ${document.openapi}`);
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => operationOf(document, path, method.toUpperCase(), raw)),
  );
}

function operationOf({ components }: OpenApi, path: string, method: string, raw: RawOperation): Operation {
  const named = (place: string) => raw.parameters.filter((each) => each.in === place).map(({ name }) => name);
  const [body] = Object.entries(raw.requestBody?.content ?? {});
  const answers = Object.entries(raw.responses).map(([status, { headers, content }]) => {
    const required = Object.values(headers).map(({ $ref }) => {
      const name = $ref.slice(HEADER_REF.length);
      if (!$ref.startsWith(HEADER_REF) || components.headers[name]?.required !== true)
        throw new Error(`no header ${$ref}`);
      return name;
    });
    const contents = Object.entries(content).map(([type, { schema }]) => [type, schema] as const);
    return [Number(status), { headers: required, content: new Map(contents) }] as const;
  });
  return {
    path,
    method,
    query: named("query"),
    headers: named("header"),
    body: body === undefined ? undefined : { type: body[0], schema: body[1].schema },
    answers: new Map(answers),
  };
}
