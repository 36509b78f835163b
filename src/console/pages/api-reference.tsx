/** @jsxImportSource preact */
import type { VNode } from "preact";
import { ConsoleDocument } from "../document.tsx";
import { Table } from "../parts/table.tsx";
import { A } from "../parts/links-forms-and-tabs.tsx";

/** Parts of an OpenAPI document that the page shows. */
export interface ApiDocument {
  readonly info: { readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Named responses and schemas that operations refer to. */
  readonly components: Readonly<Record<"responses" | "schemas", Readonly<Record<string, unknown>>>>;
}

interface Described {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly description: string }[];
  readonly requestBody?: { readonly content: Contents };
  readonly responses: Readonly<Record<string, Answer | { readonly $ref: string }>>;
}

interface Answer {
  readonly description: string;
  readonly content?: Contents;
}

const ANSWER_REF = "#/components/responses/";

const SCHEMA_REF = "#/components/schemas/";

type Contents = Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** Page that shows the OpenAPI document of /openapi.json. */
export function apiReference({ info, tags, ...document }: ApiDocument): VNode {
  const { paths, components } = putSchemasInPlace(document, document.components.schemas);
  const toAnswer = (given: Answer | { readonly $ref: string }): Answer =>
    "$ref" in given ? (components.responses[given.$ref.slice(ANSWER_REF.length)] as Answer) : given;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...(operation as Described) })),
  );
  return (
    <ConsoleDocument title="HTTP API">
      <h1>
        HTTP API <small>{info.version}</small>
      </h1>
      <p>
        For programs that generate code: <A href="/openapi.json">/openapi.json</A>.
      </p>
      <ul class="quiet">
        {info.description.split("\n").map((line) => (
          <li>{line}</li>
        ))}
      </ul>
      {tags.map(({ name, description }) => (
        <section>
          <h2>{name}</h2>
          <p>{description}</p>
          {operations
            .filter((operation) => operation.tags.includes(name))
            .map((operation) => (
              <Operation {...operation} toAnswer={toAnswer} />
            ))}
        </section>
      ))}
    </ConsoleDocument>
  );
}

/** Replaces each reference to a named schema by the schema itself, so that people can read it where it is used. */
function putSchemasInPlace<Part>(part: Part, schemas: Readonly<Record<string, unknown>>): Part {
  if (typeof part !== "object" || part === null) return part;
  if (Array.isArray(part)) return part.map((one: unknown) => putSchemasInPlace(one, schemas)) as Part;
  const { $ref = "" } = part as { readonly $ref?: string };
  if ($ref.startsWith(SCHEMA_REF)) return putSchemasInPlace(schemas[$ref.slice(SCHEMA_REF.length)] as Part, schemas);
  return Object.fromEntries(
    Object.entries(part).map(([name, one]) => [name, putSchemasInPlace(one as unknown, schemas)]),
  ) as Part;
}

interface OperationProps extends Described {
  readonly path: string;
  readonly method: string;
  readonly toAnswer: (given: Answer | { readonly $ref: string }) => Answer;
}

function Operation({ toAnswer, ...operation }: OperationProps): VNode {
  const { path, method, operationId, summary, description, security, parameters, requestBody, responses } = operation;
  return (
    <details id={operationId}>
      <summary>
        <code>
          {method.toUpperCase()} {path}
        </code>{" "}
        {summary}
      </summary>
      <p>{description}</p>
      <p class="quiet">{security.some((scheme) => Object.keys(scheme).length === 0) ? "Open." : "Needs a token."}</p>
      {parameters.length === 0 ? null : (
        <Table
          label={`Parameters of ${operationId}`}
          columns={["Parameter", "In", "Description"]}
          rowHead={null}
          rows={parameters.map((parameter) => [<code>{parameter.name}</code>, parameter.in, parameter.description])}
        />
      )}
      {requestBody === undefined ? null : <Content label={`Body of ${operationId}`} content={requestBody.content} />}
      {Object.entries(responses)
        .map(([status, given]) => [status, toAnswer(given)] as const)
        .map(([status, { description: says, content = {} }]) => (
          <>
            <p>
              <b>{status}</b> {says}
            </p>
            <Content label={`${status} of ${operationId}`} content={content} />
          </>
        ))}
    </details>
  );
}

/**
 * Fields and an example of a JSON body. Problems (errors) are left out, because their fields are the same everywhere.
 */
function Content({ label, content }: { readonly label: string; readonly content: Contents }): VNode | null {
  const { schema, example } = content["application/json"] ?? {};
  const fields = Object.entries(schema?.properties ?? {});
  if (schema === undefined || fields.length === 0) return null;
  return (
    <>
      <Table
        label={label}
        columns={["Field", "Takes", "Says"]}
        rowHead={null}
        rows={fields.map(([name, field]) => [
          <>
            <code>{name}</code>
            {schema.required?.includes(name) === true ? "" : "?"}
          </>,
          describeType(field),
          field.description ?? "",
        ])}
      />
      <pre>{JSON.stringify(example, null, 2)}</pre>
    </>
  );
}

function describeType(schema: Schema): string {
  const { type = "anything", format, minLength, maxLength, items } = schema;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(describeType))].join(" or ");
  if (type === "array" && items !== undefined) return `list of ${describeType(items)}`;
  const length = maxLength === undefined ? "" : `, ${minLength ?? 0} to ${maxLength} long`;
  return `${type}${format === undefined ? "" : ` (${format})`}${length}`;
}
