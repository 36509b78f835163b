import { Type, type TSchema } from "@sinclair/typebox";
import { named } from "../../platform/common-schemas.ts";
import type { Authentication } from "../access/bearer-tokens.ts";
import type { RequestBody } from "./body.ts";
import type { Answers, Endpoint, Declaration, RequestHeader, Success } from "./endpoint.ts";
import { KEY_CHARACTERS_MAX } from "./idempotency.ts";
import { HEADER_BYTES_MAX } from "./node-server.ts";
import {
  createComponents,
  createExample,
  referToNamed,
  shareParameters,
  toJsonSchema,
  type Components,
  type Json,
} from "./openapi-schema.ts";
import { declaredProblem, problems, type Problem, type ProblemName } from "./problem.ts";

const TAGS: Readonly<Record<Declaration["tag"], string>> = {
  outreach: "The outreach agent, which sends direct messages on X.",
  tracking: "Clicks, notifications and messages, and the channels to which they are dispatched.",
  service: "Health, figures, the log and the documents, for operators and programs.",
  console: "The pages of the operator's console, and their forms: programs do the same by the operations above.",
};

const ANYWHERE = ["unauthorized", "expiredToken", "tooMany", "internal"] as const;

const OF_BODY = ["malformed", "tooLarge", "unsupportedType", "invalid"] as const;

const OF_KEY = ["keyReused", "keyExpired", "logInDoubt"] as const;

const ABOUT = `Every error is application/problem+json (RFC 9457), and names its kind in \`type\`.
A browser, which asks for \`text/html\` and not for JSON, gets the same refusal as a page.
GET endpoints also answer HEAD. Any other method gets 405 with \`Allow\`, and any other path 404.
Lengths are counted in UTF-16 units. A body must not repeat a member, or hold NUL or half of a surrogate pair.
Every answer has the headers \`X-Request-Id\`, \`traceparent\` and \`X-Content-Type-Options\`, described once at the component \`problem\`.
\`RateLimit\` and \`RateLimit-Policy\` show the remaining quota of the limits that apply to the caller.
A request that is not HTTP/1.1, or has more than about ${HEADER_BYTES_MAX / 1_024} KiB of headers, gets an empty refusal, and the connection closes.`;

/** Names of the headers that every answer has. The API document lists them only at the default response. */
const ALWAYS = ["x-request-id", "traceparent", "x-content-type-options"];

const HEADERS: Readonly<Record<string, string>> = {
  "x-request-id": "The caller's, or a generated one.",
  traceparent: "W3C Trace Context: the caller's, or a generated one.",
  "x-content-type-options": "nosniff",
  ratelimit: "The remaining quota of each limit that applies (IETF draft).",
  "ratelimit-policy": "Each limit that applies (IETF draft).",
  "retry-after": "Seconds.",
  "www-authenticate": "The required credentials: a bearer token, or an authorization by X.",
  location: "The redirect's target.",
  "set-cookie": "HttpOnly.",
  "content-disposition": "The name of the file.",
};

const STRING = { type: "string" };

/** Header that an answer has only if the request asked for it with `Prefer`. */
const APPLIED = "preference-applied";

const LIMIT_HEADERS = ["ratelimit", "ratelimit-policy"] as const;

/** Headers that some responses with a status lack. The API document also defines each of them as an optional header. */
const SOMETIMES = [...LIMIT_HEADERS, "retry-after", "www-authenticate"];

const optional = (name: string): string => `${name}-optional`;

const JSON_TYPE = "application/json";

const PROBLEM_TYPE = "application/problem+json";

const REQUEST_HEADERS: Readonly<Record<RequestHeader, string>> = {
  "Idempotency-Key": `1 to ${KEY_CHARACTERS_MAX} printable ASCII characters, bare or quoted: makes a retry safe.`,
  Prefer: "`wait=N` waits up to N seconds, at most 300, for the end of the run (RFC 7240).",
  Accept: "`application/json` gets JSON instead of a redirect, `text/csv` gets CSV instead of JSON.",
};

/** Returns the endpoints that programs call. Pages and forms of the console, which are for people, are left out. */
export function forPrograms(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(({ tag }) => tag !== "console");
}

/**
 * Describes the endpoints in OpenAPI 3.1. `guards` says which endpoints require a token in this deployment. `cookie`:
 * name of the session cookie.
 */
export function createDocument(
  endpoints: readonly Endpoint[],
  version: string,
  guards: Authentication,
  cookie: string,
) {
  const paths: Record<string, Json> = {};
  const refusals = createComponents("responses");
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: toOperation(endpoint, guards, refusals) };
  }
  const schemas: Record<string, unknown> = { problem: toJsonSchema(PROBLEM) };
  const parameters = shareParameters(paths);
  return {
    openapi: "3.1.0",
    info: {
      title: "reachlog",
      version,
      description: ABOUT,
      contact: { name: "The operator of this service" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS)
      .filter(([name]) => endpoints.some(({ tag }) => tag === name))
      .map(([name, description]) => ({ name, description })),
    paths: referToNamed(paths, schemas) as typeof paths,
    components: {
      headers: Object.fromEntries([
        ...Object.entries(HEADERS).map(([name, description]) => [
          name,
          { description, required: true, schema: STRING },
        ]),
        ...SOMETIMES.map((name) => [optional(name), { description: HEADERS[name], schema: STRING }]),
        [optional(APPLIED), { description: "The applied part of `Prefer` (RFC 7240).", schema: STRING }],
      ]),
      responses: {
        ...(referToNamed(refusals.components, schemas) as Json),
        problem: {
          description: "Any other problem.",
          ...toHeaders(ALWAYS, []),
          content: { [PROBLEM_TYPE]: { schema: PROBLEM_REF } },
        },
      },
      parameters,
      schemas,
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: cookie },
      },
    },
  };
}

function toOperation(endpoint: Endpoint, guards: Authentication, refusals: Components): Json {
  const { id, tag, summary, description, parameters = {}, query = {}, requestHeaders = [], body } = endpoint;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: toSecurity(endpoint, guards),
    parameters: [
      ...Object.entries(parameters).map(([name, about]) => ({ ...parameter("path", name, about), required: true })),
      ...Object.entries(query).map(([name, about]) => parameter("query", name, about)),
      ...requestHeaders.map((name) => parameter("header", name, REQUEST_HEADERS[name])),
    ],
    ...(body === undefined ? {} : { requestBody: toRequestBody(body) }),
    responses: toResponses(endpoint, guards.guards(endpoint), refusals),
  };
}

/**
 * True if people open the endpoint in a browser, because its responses are pages or redirect to one. Only for such
 * endpoints does the API document mention error pages.
 */
function isVisited(answers: Answers): boolean {
  const successes: readonly Success[] = Object.values(answers);
  return successes.some(({ mediaType, headers = [] }) => mediaType === "text/html" || headers.includes("location"));
}

function toResponses(endpoint: Endpoint, isGuarded: boolean, refusals: Components): Json {
  const { answers, limit, requestHeaders = [] } = endpoint;
  const mayHave = [...(isGuarded ? [] : LIMIT_HEADERS), ...(requestHeaders.includes("Prefer") ? [APPLIED] : [])];
  const byStatus: Readonly<Record<string, Success | undefined>> = answers;
  const responses: [string, Json][] = Object.entries(answers).map(([status, success]: [string, Success]) => {
    const { description, headers = [] } = success;
    return [status, { description, ...toHeaders(headers, mayHave), content: toContent(success) }];
  });
  for (const [status, listed] of Map.groupBy(listProblems(endpoint), ({ problem }) => problem.status)) {
    const other = byStatus[status];
    const content = {
      ...(other === undefined ? {} : toContent(other)),
      [PROBLEM_TYPE]: { schema: { allOf: [PROBLEM_REF, toJsonSchema(toProblemSchema(status, listed))] } },
      ...(isVisited(answers) ? { "text/html": { schema: STRING } } : {}),
    };
    const titles = listed.map(({ problem }) => problem.title);
    const description = [...(other === undefined ? [] : [other.description]), ...titles].join(" / ");
    const refusal = { description, ...toProblemHeaders(listed, !isGuarded, limit !== undefined), content };
    const slugs = listed.map(({ problem }) => problem.slug).join("-or-");
    responses.push([String(status), other === undefined ? refusals.refer(slugs, refusal) : refusal]);
  }
  return { ...Object.fromEntries(responses), default: { $ref: "#/components/responses/problem" } };
}

/** A problem of an endpoint. `name` is undefined if it is a refusal of the endpoint's operation. */
interface Listed {
  readonly name?: ProblemName;
  readonly problem: Problem;
}

/** Returns the problems that an endpoint declares, and those that follow from its declaration. */
function listProblems(endpoint: Endpoint): readonly Listed[] {
  const {
    method,
    scope,
    exemptFromLoadShedding,
    anyHost,
    anyOrigin,
    body,
    requestHeaders,
    problems: own,
    refusals = {},
  } = endpoint;
  const all = [
    ...ANYWHERE,
    ...(anyHost === true ? [] : (["misdirected"] as const)),
    ...(exemptFromLoadShedding === true ? [] : (["overloaded", "logUnavailable", "projectionFolding"] as const)),
    ...(scope === undefined ? [] : (["missingScope"] as const)),
    ...(body === undefined ? [] : OF_BODY),
    ...(method === "POST" && anyOrigin !== true ? (["foreignSite"] as const) : []),
    ...(requestHeaders?.includes("Idempotency-Key") === true ? OF_KEY : []),
    ...own,
  ];
  const named = [...new Set(all)].map((name) => ({ name, problem: sample(name) }));
  return [
    ...named,
    ...Object.entries(refusals).map(([name, declared]) => {
      const more = Object.fromEntries(declared.more.map((member) => [member, undefined]));
      return { problem: declaredProblem({ ...declared, name, more }) };
    }),
  ];
}

/** Returns an example of this problem. Its wording may differ from that of a real one. */
function sample(name: ProblemName): Problem {
  return (problems[name] as (...words: readonly unknown[]) => Problem)();
}

/** Problems found before the caller is known, whose responses lack the headers of the rate limit by address. */
const BEFORE_CALLER: ReadonlySet<ProblemName> = new Set([
  "misdirected",
  "overloaded",
  "unauthorized",
  "expiredToken",
  "missingScope",
  "foreignSite",
]);

/** Problems found before the handler is called, whose responses lack the headers of the day's message quota. */
const BEFORE_HANDLER: ReadonlySet<ProblemName> = new Set([
  ...BEFORE_CALLER,
  "tooMany",
  "tooLarge",
  "unsupportedType",
  "invalid",
]);

/**
 * Returns the headers that all or some responses with these problems have. `limitsAddress`: callers without a token are
 * admitted, with a limit by address, except on this machine. `limitsDay`: the headers state the day's quota.
 */
function toProblemHeaders(listed: readonly Listed[], limitsAddress: boolean, limitsDay: boolean): Json {
  const isIn = (names: ReadonlySet<ProblemName>, { name }: Listed): boolean => name !== undefined && names.has(name);
  const showsLimit = (one: Listed): boolean =>
    (limitsAddress && !isIn(BEFORE_CALLER, one)) || (limitsDay && !isIn(BEFORE_HANDLER, one));
  const all = new Set(
    listed.flatMap((one) => [...Object.keys(one.problem.headers), ...(showsLimit(one) ? LIMIT_HEADERS : [])]),
  );
  const sure = new Set([...all].filter((header) => listed.every(({ problem }) => header in problem.headers)));
  return toHeaders([...sure], [...all.difference(sure)]);
}

/** Schema of the members that every problem has (RFC 9457). */
const PROBLEM = Type.Object({
  type: Type.String({ format: "uri" }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String({ description: "The request's id." }),
});

const PROBLEM_REF = { $ref: "#/components/schemas/problem" };

const PROBLEM_MORE: Readonly<Record<string, TSchema>> = {
  errors: named("InvalidMembers", Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
  run_id: Type.Union([Type.String({ format: "uuid" }), Type.Null()]),
};

/** Returns a schema for problems with one status: their types, and the members that they add. */
function toProblemSchema(status: number, listed: readonly Listed[]): TSchema {
  const more = new Set(listed.flatMap(({ problem }) => Object.keys(problem.more)));
  return Type.Object({
    type: Type.Unsafe<string>({ enum: listed.map(({ problem }) => `urn:reachlog:problem:${problem.slug}`) }),
    status: Type.Literal(status),
    ...Object.fromEntries([...more].map((name) => [name, Type.Optional(PROBLEM_MORE[name] ?? Type.Unknown())])),
  });
}

function toSecurity(endpoint: Endpoint, guards: Authentication): Json[] {
  const scopes = endpoint.scope === undefined ? [] : [endpoint.scope];
  if (guards.guards(endpoint)) return [{ token: scopes }];
  if (endpoint.protection === "session" || endpoint.protection === "form") {
    // A page accepts a session only; an endpoint for programs accepts a token as well.
    const isPage = endpoint.protection === "form" || endpoint.tag === "console";
    const taken = isPage ? [{ session: scopes }] : [{ token: scopes }, { session: scopes }];
    return guards.guardsConsole ? taken : [...taken, {}];
  }
  // No token is required, but a wrong one is refused.
  return [{}, { token: scopes }];
}

function toRequestBody({ schema, type, others = new Map() }: RequestBody<unknown>): Json {
  return {
    required: "required" in schema && schema["required"] !== undefined,
    content: Object.fromEntries([[type, schema] as const, ...others].map(([one, held]) => [one, contentAs(one, held)])),
  };
}

function toContent({ schema, mediaType, otherMediaTypes = [] }: Success): Json {
  if (mediaType !== undefined) {
    return Object.fromEntries([mediaType, ...otherMediaTypes].map((type) => [type, { schema: STRING }]));
  }
  if (schema === undefined) return {};
  const others = otherMediaTypes.map((type) => [type, { schema: STRING }] as const);
  return { [JSON_TYPE]: contentAs(JSON_TYPE, schema), ...Object.fromEntries(others) };
}

/** Describes a response body of this media type, with an example if it is JSON and its schema yields one. */
function contentAs(type: string, schema: TSchema): Json {
  const known = toJsonSchema(schema);
  const example = type === JSON_TYPE ? createExample(known) : undefined;
  return { schema: known, ...(example === undefined ? {} : { example }) };
}

/** Returns the member `headers` of a response with these headers, some of them optional; nothing if it has none. */
function toHeaders(names: readonly string[], some: readonly string[]): Json {
  const toRef = (name: string) => ({ $ref: `#/components/headers/${name}` });
  const headers = [
    ...some.map((name) => [name, toRef(optional(name))] as const),
    ...names.map((name) => [name, toRef(name)] as const),
  ];
  return headers.length === 0 ? {} : { headers: Object.fromEntries(headers) };
}

function parameter(place: "path" | "query" | "header", name: string, description: string): Json {
  return { name, in: place, description, schema: STRING };
}
