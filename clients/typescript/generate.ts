/**
 * Generates the client's types from the service's OpenAPI document. Fetches the tool on each run, because a dependency
 * on it would install its TypeScript with the service.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createAuthentication } from "../../src/http/access/bearer-tokens.ts";
import { describeEndpoints } from "../../src/http/endpoints.ts";
import { createDocument, forPrograms } from "../../src/http/server/openapi.ts";

const TOOL = ["--package=openapi-typescript@7.13.0", "--package=typescript@5.9.3", "openapi-typescript"];

/** Path of the generated types. */
export const TYPES_FILE = join(import.meta.dirname, "src/api.ts");

/** The document from which the types are generated. */
function describedApi(): string {
  const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] }, Date.now);
  const document = createDocument(forPrograms(describeEndpoints()), "", guards, "reachlog_session");
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path)) as Described[];
  for (const { responses, requestBody } of [...operations, document.components as Described]) {
    narrow(responses);
    for (const body of Object.values(requestBody?.content ?? {})) delete body.example;
  }
  const text = mergeVariants(document.components as Described, JSON.stringify(document.paths));
  return JSON.stringify({ ...document, paths: JSON.parse(text) as object });
}

/**
 * Removes duplicates of errors, which have a number after their name and differ only in what {@link narrow} removes.
 * Keeps the first one.
 */
function mergeVariants({ responses }: Described, paths: string): string {
  for (const [name, response] of Object.entries(responses)) {
    const first = name.replace(/\.\d+$/, "");
    if (name === first || JSON.stringify(response) !== JSON.stringify(responses[first])) continue;
    delete responses[name];
    paths = paths.replaceAll(`/responses/${name}"`, `/responses/${first}"`);
  }
  return paths;
}

type Content = Record<string, { example?: unknown }>;

interface Described {
  readonly requestBody?: { readonly content: Content };
  readonly responses: Record<string, { headers?: unknown; readonly content?: Content }>;
}

const PROBLEM_TYPE = "application/problem+json";

/**
 * Keeps only the parts of answers that programs distinguish. Removes the generic problem, whose text type would widen
 * all others; pages for browsers; and headers and examples, half of the file. Members keep their own examples.
 */
function narrow(responses: Described["responses"]): void {
  delete responses["default"];
  for (const response of Object.values(responses)) {
    delete response.headers;
    const { content = {} } = response;
    if (PROBLEM_TYPE in content) delete content["text/html"];
    for (const one of Object.values(content)) delete one.example;
  }
}

/**
 * Patterns of lines without information: absent methods, parameters and bodies of a path, headers of any name, notes
 * about literals, and answers that are not described further.
 */
const EMPTY = [
  /^ *(?:put|post|get|delete|options|head|patch|trace|query|header|path|cookie|requestBody)\?: never;\n/gm,
  /^ *headers: \{\n *\[name: string\]: unknown;\n *\};\n/gm,
  /^ *parameters: \{\n *\};\n/gm,
  // Headers of answers, which narrow() removes from the document.
  /^    headers: \{\n(?:      .*\n)*    \};\n/gm,
  /^ *\/\*\* @(?:enum \{unknown\}|constant|description The answer\.) \*\/\n/gm,
  /^ *\* @constant\n/gm,
];

/** Pattern of an error response in the generated types, with the additional members of its problems. */
const REFUSAL =
  /\{\s*content: \{\s*"application\/problem\+json": components\["schemas"\]\["problem"\] & \{\s*type:([^;]+);\s*status: (\d+);([^{}]*)\};\s*\};\s*\};/g;

const PROBLEM_PREFIX = "urn:reachlog:problem:";

/** The additional member of problems that say which members of a body are wrong. */
const ERRORS = 'errors?: components["schemas"]["InvalidMembers"];';

/** Pattern of the descriptions of errors: their titles, which repeat their types. */
const TITLE = /^ *\/\*\* @description .* \*\/\n(?= *"[a-z-]+(?:\.\d+)?": Problem<)/gm;

/** Pattern of a body or an answer that is JSON and nothing else. The indentation finds its end. */
const JSON_CONTENT =
  /^( *)(\d+|requestBody\??): \{\n *content: \{\n( *)"application\/json": ((?:(?!\n\3")[^])*?);\n\1 {4}\};\n\1\};/gm;

/** Refusals that many operations share, by the name of their type here. */
const SHARED_REFUSALS = {
  Refusals: {
    401: "unauthorized-or-expired-token",
    421: "misdirected-request",
    429: "too-many-requests",
    500: "internal-error",
  },
  BodyRefusals: { 400: "malformed-request", 413: "body-too-large", 415: "unsupported-media-type" },
  ReadRefusals: { 403: "missing-scope", 503: "overloaded-or-log-unavailable-or-projection-folding" },
  WriteRefusals: { 403: "missing-scope-or-foreign-site", 503: "overloaded-or-log-unavailable-or-projection-folding" },
};

const DECLARATIONS = `
interface Problem<Slug extends string, Status extends number, More = unknown> {
  content: {
    "application/problem+json": components["schemas"]["problem"] & {
      type: \`${PROBLEM_PREFIX}\${Slug}\`;
      status: Status;
    } & More;
  };
}

interface Misfits {
  ${ERRORS}
}

interface Json<Body> {
  content: { "application/json": Body };
}
`;

/** Writes refusals that operations share once, and each JSON body in one line, which saves a tenth of the file. */
function shorten(types: string): string {
  const problems = types.replaceAll(REFUSAL, (_all, type: string, status: string, more: string) => {
    const members = more.trim() === "" ? "" : `, ${more.trim() === ERRORS ? "Misfits" : `{${more}}`}`;
    return `Problem<${type.replaceAll(PROBLEM_PREFIX, "")}, ${status}${members}>;`;
  });
  const json = problems.replaceAll(TITLE, "").replaceAll(JSON_CONTENT, "$1$2: Json<$4>;");
  const refusals = Object.entries(SHARED_REFUSALS).map(([name, named]) => {
    const lines = Object.entries(named).map(([status, problem]) => `${status}: components["responses"]["${problem}"];`);
    return { name, lines };
  });
  const shared = json.replaceAll(/^( *)responses: \{\n([^]*?)^\1\};/gm, (_all, indent: string, body: string) => {
    const has = refusals.filter(({ lines }) => lines.every((line) => body.includes(` ${line}\n`)));
    const rest = has
      .flatMap(({ lines }) => lines)
      .reduce((text, line) => text.replace(new RegExp(`^ *${RegExp.escape(line)}\\n`, "m"), ""), body);
    return `${indent}responses: ${[...has.map(({ name }) => name), `{\n${rest}${indent}}`].join(" & ")};`;
  });
  const declared = refusals.map(({ name, lines }) => `\ninterface ${name} {\n${lines.join("\n")}\n}\n`);
  return shared + DECLARATIONS + declared.join("");
}

/** The first line of the types, which identifies the document they come from. */
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
    const types = EMPTY.reduce((text, empty) => text.replaceAll(empty, ""), readFileSync(output, "utf8"));
    writeFileSync(TYPES_FILE, `${headerOf(described)}\n${shorten(types)}`);
    execFileSync(process.execPath, ["fmt", TYPES_FILE], { stdio: "inherit" });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) generate();
