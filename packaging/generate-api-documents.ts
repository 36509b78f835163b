/**
 * Updates the documents generated from the declarations of endpoints and commands: OpenAPI, with required tokens, and
 * the lists and tables of endpoints, problems, commands and scopes in the guides.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { TOKEN_SCOPES } from "../src/config/parse-api-tokens.ts";
import { createAuthentication } from "../src/http/access/bearer-tokens.ts";
import type { Endpoint } from "../src/http/server/endpoint.ts";
import { createDocument, forPrograms } from "../src/http/server/openapi.ts";
import { describeEndpoints } from "../src/http/endpoints.ts";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
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

interface DescribedResponse {
  readonly $ref?: string;
}

/** Members of the OpenAPI document that the tables show. */
interface ApiDocument {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, DescribedResponse>> }>>>
  >;
  readonly components: { readonly responses: Readonly<Record<string, DescribedResponse>> };
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

/** Maximum number of endpoints in one item of a list: about three lines. */
const ITEM_ENDPOINTS = 10;

/** The endpoints of the console, or all others, grouped by caller and scope. */
function listEndpoints(isConsole: boolean): readonly (readonly string[])[] {
  const endpoints = describeEndpoints()
    .filter(({ tag }) => (tag === "console") === isConsole)
    .toSorted((a, b) => (a.path < b.path ? -1 : Number(a.path > b.path)));
  const groups = Map.groupBy(endpoints, (endpoint) => {
    const scope = endpoint.scope === undefined ? "" : `\`${endpoint.scope}\``;
    return JSON.stringify([describeCaller(endpoint), scope]);
  });
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([group, all]) => {
      const names = all.map(({ method, path }) => `\`${method} ${path}\``);
      const items = Array.from({ length: Math.ceil(names.length / ITEM_ENDPOINTS) }, (_, at) =>
        names.slice(at * ITEM_ENDPOINTS, (at + 1) * ITEM_ENDPOINTS).join(", "),
      );
      return items.map((item) => [...(JSON.parse(group) as string[]), item]);
    });
}

const reachlog = await loadReachlog();

/** The executable commands, grouped by the topics of the program's help. */
function listCommands(): readonly (readonly string[])[] {
  const program = reachlog({ env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() });
  const topics = Map.groupBy(program.commands, (command) => command.helpGroup().replace(/:$/, ""));
  return [...topics].map(([topic, commands]) => [
    topic,
    commands.flatMap((command) => runnablePaths(command, [])).join(", "),
  ]);
}

function runnablePaths(command: CommandUnknownOpts, parents: readonly string[]): readonly string[] {
  const path = [...parents, command.name()];
  const below = command.commands.flatMap((one) => runnablePaths(one, path));
  return isRunnable(command) ? [`\`${path.join(" ")}\``, ...below] : below;
}

type Table = readonly (readonly string[])[];

/** The guides with generated lists and tables, in their order. */
export const GENERATED: Readonly<Record<string, () => readonly string[]>> = {
  "docs/command-line.md": () => [formatList(listCommands())],
  "docs/configure.md": () => [
    formatTable([
      ["Scope", "A token with it"],
      ...Object.entries(TOKEN_SCOPES).map(([name, description]) => [`\`${name}\``, description]),
    ]),
  ],
  "docs/http-api.md": () => [
    formatList(listEndpoints(false)),
    formatList(listEndpoints(true)),
    formatTable([["Status", "`type` ends with"], ...tabulateProblems()]),
  ],
};

const [BEGIN, END] = ["<!-- Written by `bun run document`. -->\n\n", "\n<!-- The end of what is written. -->"];

/** Returns the guide's text with up-to-date generated parts. */
export function withGenerated(text: string, generated: readonly string[]): string {
  const [start = "", ...parts] = text.split(BEGIN);
  const isMarked = parts.length === generated.length && parts.every((part) => part.includes(END));
  if (!isMarked) throw new Error("the guide does not say where its generated parts stand");
  return [start, ...parts.map((part, at) => generated[at]! + part.slice(part.indexOf(END)))].join(BEGIN);
}

/** Writes each row as an item: its last cell, after a colon, and before it the others that are not empty. */
function formatList(rows: Table): string {
  return rows
    .map(
      (row) =>
        `- ${row
          .slice(0, -1)
          .filter((cell) => cell !== "")
          .join(", ")}: ${row.at(-1)}\n`,
    )
    .join("");
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
  for (const [guide, generate] of Object.entries(GENERATED)) {
    writeFileSync(guide, withGenerated(readFileSync(guide, "utf8"), generate()));
  }
}
