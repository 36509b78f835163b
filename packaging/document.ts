/**
 * Updates the documents generated from the declarations of endpoints and commands: OpenAPI, with required tokens, and
 * the tables of endpoints, problems, commands, scopes and reads in the guides.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { TOKEN_SCOPES } from "../src/config/tokens.ts";
import { createAuthentication } from "../src/http/access/bearer-tokens.ts";
import type { Endpoint } from "../src/http/server/endpoint.ts";
import { createDocument, forPrograms } from "../src/http/server/openapi.ts";
import { describeEndpoints } from "../src/http/endpoints.ts";
import type { Argument, CommandUnknownOpts } from "@commander-js/extra-typings";
import { isRunnable } from "../src/commands/shared/command.ts";
import { loadReachlog } from "../src/commands/shared/root-command.ts";
import { VERSION } from "../src/platform/version.ts";

export function describeApi(): string {
  const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] }, Date.now);
  return JSON.stringify(createDocument(forPrograms(describeEndpoints()), VERSION, guards, "__Host-reachlog_session"));
}

/** The credential that an endpoint requires under `AUTH_POLICY=strict`. */
function describeCaller({ protection, tag }: Endpoint): string {
  if (protection === "open") return "all";
  if (protection === "strict") return "token under `strict`";
  if (protection === "token") return "token";
  return tag === "console" ? "session" : "token/session";
}

interface Schema {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
}

type Content = Readonly<Record<string, { readonly schema?: Schema }>>;

interface DescribedResponse {
  readonly $ref?: string;
  readonly content?: Content;
}

interface Parameter {
  readonly $ref?: string;
  readonly name?: string;
  readonly in?: string;
}

/** Members of an operation in the OpenAPI document that the tables show. */
interface Operation {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, DescribedResponse>>;
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, DescribedResponse>>;
  };
}

/** The statuses of refusals, each with the slugs of its problems. */
function tabulateProblems(): readonly (readonly string[])[] {
  const { paths, components } = JSON.parse(describeApi()) as ApiDocument;
  const slugs = new Map<string, Set<string>>();
  for (const { responses } of Object.values(paths).flatMap((path) => Object.values(path))) {
    for (const [status, response] of Object.entries(responses)) {
      const resolved = components.responses[response.$ref?.split("/").pop() ?? ""] ?? response;
      for (const [, slug = ""] of JSON.stringify(resolved).matchAll(/"urn:reachlog:problem:([\w-]+)"/g)) {
        slugs.set(status, (slugs.get(status) ?? new Set()).add(`\`${slug}\``));
      }
    }
  }
  return [...slugs].toSorted(([a], [b]) => Number(a) - Number(b)).map(([status, all]) => [status, [...all].join(", ")]);
}

/** The endpoints with caller and scope, and the members of request and answer; those of the console come last. */
function tabulateEndpoints(): readonly (readonly string[])[] {
  const { paths, components } = JSON.parse(describeApi()) as ApiDocument;
  const resolve = (schema: Schema = {}): Schema => components.schemas[schema.$ref?.split("/").pop() ?? ""] ?? schema;
  const endpoints = describeEndpoints().toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
  const [ofConsole = [], others = []] = [true, false].map((is) =>
    endpoints.filter(({ tag }) => (tag === "console") === is),
  );
  return [...others, ...ofConsole].map((endpoint) => {
    const { method, path, scope } = endpoint;
    const operation = paths[path.replaceAll(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
    const cells =
      operation === undefined
        ? ["", ""]
        : [describeRequest(operation, components, resolve), describeAnswers(operation, resolve)];
    return [`\`${method} ${path}\``, describeCaller(endpoint), scope === undefined ? "" : `\`${scope}\``, ...cells];
  });
}

/** The names of the query, then those of a JSON body, with a question mark behind optional ones. */
function describeRequest(
  { parameters = [], requestBody }: Operation,
  components: ApiDocument["components"],
  resolve: (schema?: Schema) => Schema,
): string {
  const query = parameters.flatMap((one) => {
    const { in: place, name } = components.parameters[one.$ref?.split("/").pop() ?? ""] ?? one;
    return place === "query" ? [name] : [];
  });
  const { properties = {}, required = [] } = resolve(requestBody?.content["application/json"]?.schema);
  const members = Object.keys(properties).map((name) => (required.includes(name) ? name : `${name}?`));
  return [
    query.length === 0 ? "" : `\`?${query.join(", ")}\``,
    members.length === 0 ? "" : `\`{${members.join(", ")}}\``,
  ]
    .filter((part) => part !== "")
    .join(" ");
}

/** Number of members by which a table names an answer, enough to recognize it; the OpenAPI document has all of them. */
const MEMBERS_NAMED_MAX = 6;

/** The statuses of success, each with the first members of its JSON or with its media types. */
function describeAnswers({ responses }: Operation, resolve: (schema?: Schema) => Schema): string {
  return Object.entries(responses)
    .filter(([status]) => /^[23]/.test(status))
    .map(([status, { content = {} }]) => {
      const [{ schema } = {}] = Object.values(content);
      const all = Object.keys(resolve(schema).properties ?? {});
      const names = all.length > MEMBERS_NAMED_MAX ? [...all.slice(0, MEMBERS_NAMED_MAX), "…"] : all;
      return `${status} ${names.length === 0 ? Object.keys(content).join(" or ") : `\`{${names.join(", ")}}\``}`.trim();
    })
    .join("; ");
}

const reachlog = await loadReachlog();

/** The executable commands with arguments and required options, each with its summary and its other options. */
function listCommands(
  command: CommandUnknownOpts = reachlog({
    env: {},
    out() {},
    err() {},
    interactive: false,
    signal: AbortSignal.abort(),
  }),
  path: readonly string[] = [],
): readonly (readonly string[])[] {
  const below = command.commands.flatMap((one) => listCommands(one, [...path, one.name()]));
  if (!isRunnable(command)) return below;
  const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
  const others = command.options.flatMap(({ mandatory, long }) =>
    mandatory || long === "--json" ? [] : [`\`${long}\``],
  );
  const usage = [...path, ...command.registeredArguments.map(formatArgument), ...required].join(" ");
  return [[`\`${usage}\``, command.summary(), others.join(" ")], ...below];
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

type Table = readonly (readonly string[])[];

/** The guides with generated tables, in their order. */
export const TABLES: Readonly<Record<string, () => readonly Table[]>> = {
  "docs/command-line.md": () => [[["Command", "Does", "Options"], ...listCommands()]],
  "docs/configure.md": () => [
    [
      ["Scope", "A token with it"],
      ...Object.entries(TOKEN_SCOPES).map(([name, description]) => [`\`${name}\``, description]),
    ],
  ],
  "docs/personal-data.md": () => [
    [
      ["Endpoint", "`resource`"],
      ...describeEndpoints().flatMap(({ method, path, personalRead }) =>
        personalRead ? [[`\`${method} ${path}\``, `\`${personalRead}\``]] : [],
      ),
    ],
  ],
  "docs/http-api.md": () => [
    [["Endpoint", "Caller", "Scope", "Takes", "Answers"], ...tabulateEndpoints()],
    [["Status", "`type` ends with"], ...tabulateProblems()],
  ],
};

const [BEGIN, END] = ["<!-- Written by `bun run document`. -->\n\n", "\n<!-- The end of what is written. -->"];

/** Returns the guide's text with up-to-date tables. */
export function withTables(text: string, tables: readonly Table[]): string {
  const [start = "", ...parts] = text.split(BEGIN);
  const isMarked = parts.length === tables.length && parts.every((part) => part.includes(END));
  if (!isMarked) throw new Error("the guide does not say where its tables stand");
  return [start, ...parts.map((part, at) => formatTable(tables[at]!) + part.slice(part.indexOf(END)))].join(BEGIN);
}

function formatTable([head = [], ...rows]: Table): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |\n`;
  return [head, widths.map((width) => "-".repeat(width)), ...rows].map(line).join("");
}

/** Number of levels of the API document that are written in lines: section, path or kind, and operation or component. */
const LEVELS = 3;

/** Writes JSON with a line for each operation and component, so that a diff shows which of them changed. */
function formatByPart(value: unknown, levels = LEVELS): string {
  if (levels === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  const lines = Object.entries(value).map(
    ([name, part]) => `${JSON.stringify(name)}:${formatByPart(part, levels - 1)}`,
  );
  return `{\n${lines.join(",\n")}\n}`;
}

if (import.meta.main) {
  writeFileSync(process.argv[2] ?? "openapi.json", `${formatByPart(JSON.parse(describeApi()))}\n`);
  for (const [guide, tables] of Object.entries(TABLES)) {
    writeFileSync(guide, withTables(readFileSync(guide, "utf8"), tables()));
  }
}
