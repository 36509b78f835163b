/**
 * Generates the types of the client from the service's OpenAPI document. The tool is fetched for that: installed here, its
 * TypeScript would come along wherever the service is.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthentication } from "../../src/http/access/bearer-tokens.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { createDocument } from "../../src/http/server/openapi.ts";

const TOOL = ["--package=openapi-typescript@7.13.0", "--package=typescript@5.9.3", "openapi-typescript"];

/** Where the types are. */
export const TYPES_FILE = join(import.meta.dirname, "src/api.ts");

/** All that programs ask for, as the types show it: the console's pages and forms are people's. */
function describedApi(): string {
  const endpoints = describeEndpoints().filter(({ tag }) => tag !== "console");
  const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] }, Date.now);
  const document = createDocument(endpoints, "", guards, "reachlog_session");
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path)) as Described[];
  for (const { responses } of operations) narrow(responses);
  return JSON.stringify(document);
}

interface Described {
  readonly responses: Record<string, { headers?: unknown; readonly content?: Record<string, unknown> }>;
}

const PROBLEM_TYPE = "application/problem+json";

/**
 * Leaves of the answers what a program tells apart: not the problem of which nothing but its shape is known, which would
 * make a text of the type of all others, nor the pages that browsers get in its place, nor headers, half of the file.
 */
function narrow(responses: Described["responses"]): void {
  delete responses["default"];
  for (const response of Object.values(responses)) {
    delete response.headers;
    if (response.content !== undefined && PROBLEM_TYPE in response.content) delete response.content["text/html"];
  }
}

/** The first line of the types: of what they were made. */
export function headerOf(described = describedApi()): string {
  const digest = createHash("sha256").update(described).digest("hex");
  return `// Written by generate.ts, of the API with the SHA-256 ${digest}.`;
}

function generate(): void {
  const folder = mkdtempSync(join(tmpdir(), "reachlog-client-"));
  try {
    const [input, output] = ["openapi.json", "api.ts"].map((name) => join(folder, name)) as [string, string];
    const described = describedApi();
    writeFileSync(input, described);
    execFileSync("npx", ["-y", ...TOOL, input, "--output", output], { stdio: "inherit" });
    writeFileSync(TYPES_FILE, `${headerOf(described)}\n${readFileSync(output, "utf8")}`);
    execFileSync(process.execPath, ["fmt", TYPES_FILE], { stdio: "inherit" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) generate();
