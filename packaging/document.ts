/**
 * Updates the documents generated from the declarations of endpoints and commands: OpenAPI, with required tokens, and
 * the tables of commands, scopes and reads in the guides.
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
  if (protection === "open") return "every caller";
  if (protection === "strict") return "token; no token under `spec`";
  if (protection === "token") return "token";
  return tag === "console" ? "session" : "token or session";
}

const reachlog = await loadReachlog();

/** The executable commands as in usage lines, each with its summary. */
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
  const options = command.options.map(({ flags, mandatory }) => (mandatory ? flags : `[${flags}]`));
  return [
    [`\`${[...path, ...command.registeredArguments.map(formatArgument), ...options].join(" ")}\``, command.summary()],
    ...below,
  ];
}

function formatArgument(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** The guides with a generated table, each with the table's rows. */
export const TABLES: Readonly<Record<string, () => readonly (readonly string[])[]>> = {
  "docs/command-line.md": () => [["Command", "Does"], ...listCommands()],
  "docs/configure.md": () => [
    ["Scope", "A token with it"],
    ...Object.entries(TOKEN_SCOPES).map(([name, description]) => [`\`${name}\``, description]),
  ],
  "docs/personal-data.md": () => [
    ["Endpoint", "`resource`"],
    ...describeEndpoints().flatMap(({ method, path, personalRead }) =>
      personalRead ? [[`\`${method} ${path}\``, `\`${personalRead}\``]] : [],
    ),
  ],
  "docs/http-api.md": () => [
    ["Endpoint", "Caller", "Scope"],
    ...describeEndpoints().map((endpoint) => [
      `\`${endpoint.method} ${endpoint.path}\``,
      describeCaller(endpoint),
      endpoint.scope === undefined ? "" : `\`${endpoint.scope}\``,
    ]),
  ],
};

const [BEGIN, END] = ["<!-- Written by `bun run document`. -->\n\n", "\n<!-- The end of what is written. -->"];

/** Returns the guide's text with an up-to-date table. */
export function withTable(text: string, rows: readonly (readonly string[])[]): string {
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (before === -1 || after < before) throw new Error("the guide does not say where its table stands");
  return text.slice(0, before + BEGIN.length) + formatTable(rows) + text.slice(after);
}

function formatTable([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |\n`;
  return [head, widths.map((width) => "-".repeat(width)), ...rows].map(line).join("");
}

if (import.meta.main) {
  writeFileSync(process.argv[2] ?? "openapi.json", describeApi());
  for (const [guide, rows] of Object.entries(TABLES)) {
    writeFileSync(guide, withTable(readFileSync(guide, "utf8"), rows()));
  }
}
