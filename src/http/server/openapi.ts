import { Type, type TSchema } from "@sinclair/typebox";
import type { Authentication } from "../access/bearer-tokens.ts";
import type { RequestBody } from "./body.ts";
import type { Answers, Endpoint, Declaration, RequestHeader, Success } from "./endpoint.ts";
import { KEY_CHARACTERS_MAX } from "./idempotency.ts";
import { HEADER_BYTES_MAX } from "./node-server.ts";
import { problems, type Problem, type ProblemName } from "./problem.ts";

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
\`RateLimit\` and \`RateLimit-Policy\` show the rest of the limits that apply to the caller.
A request that is not HTTP/1.1, or has more than about ${HEADER_BYTES_MAX / 1_024} KiB of headers, gets an empty refusal, and the connection closes.`;

/** The headers of every answer. */
const ALWAYS = ["x-request-id", "traceparent", "x-content-type-options"];

const HEADERS: Readonly<Record<string, string>> = {
  "x-request-id": "The caller's, or a generated one.",
  traceparent: "W3C Trace Context: the caller's, or one that was made.",
  "x-content-type-options": "nosniff",
  ratelimit: "The rest of each limit that applies (IETF draft).",
  "ratelimit-policy": "Each limit that applies (IETF draft).",
  "retry-after": "Seconds.",
  "www-authenticate": "The required credentials: a bearer token, or an authorization by X.",
  location: "The redirect's target.",
  "set-cookie": "HttpOnly.",
  "content-disposition": "The name of the file.",
};

type Json = Readonly<Record<string, unknown>>;

const STRING = { type: "string" };

/** Only an answer to a request that asked for it has this one. */
const APPLIED = "preference-applied";

const LIMIT_HEADERS = ["ratelimit", "ratelimit-policy"] as const;

/** Headers that only some answers of a status have. They stand among the components a second time, by another name. */
const SOMETIMES = [...LIMIT_HEADERS, "retry-after", "www-authenticate"];

const optional = (name: string): string => `${name}-optional`;

/** Formats as JSON Schema knows them, in the place of those by which the service checks. */
const FORMATS: Readonly<Record<string, Json>> = {
  "http-url": { type: "string", format: "uri" },
  "ip-address": {
    anyOf: [
      { type: "string", format: "ipv4" },
      { type: "string", format: "ipv6" },
    ],
  },
};

const JSON_TYPE = "application/json";

const PROBLEM_TYPE = "application/problem+json";

const REQUEST_HEADERS: Readonly<Record<RequestHeader, string>> = {
  "Idempotency-Key": `1 to ${KEY_CHARACTERS_MAX} printable ASCII characters, bare or quoted: makes a retry safe.`,
  Prefer: "`wait=N` waits up to N seconds, at most 300, for the end of the run (RFC 7240).",
  Accept: "`application/json` gets JSON in place of a redirect, `text/csv` gets CSV in place of JSON.",
};

/** The endpoints that programs call. The console's pages and forms do the same by them, for people. */
export function forPrograms(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.filter(({ tag }) => tag !== "console");
}

type Guards = Pick<Authentication, "guards" | "guardsConsole">;

/**
 * Describes the endpoints in terms of OpenAPI 3.1. `guards` says whether this deployment wants a token for an endpoint,
 * `cookie` is the name of the session's cookie.
 */
export function createDocument(endpoints: readonly Endpoint[], version: string, guards: Guards, cookie: string) {
  const paths: Record<string, Json> = {};
  const refusals = createRefusals();
  for (const endpoint of endpoints) {
    const path = endpoint.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: toOperation(endpoint, guards, refusals) };
  }
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
    paths,
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
        ...refusals.components,
        problem: { description: "Any other problem.", content: { [PROBLEM_TYPE]: { schema: PROBLEM_REF } } },
      },
      schemas: { problem: plain(PROBLEM) },
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: cookie },
      },
    },
  };
}

/** Refusals that operations share. */
interface Refusals {
  /** Answers by name: the slugs of the problems, and a number where their headers or media types differ. */
  readonly components: Readonly<Record<string, Json>>;
  /** Adds a refusal unless an equal one is there, and returns a reference to it. */
  refer(names: readonly ProblemName[], refusal: Json): Json;
}

function createRefusals(): Refusals {
  const components: Record<string, Json> = {};
  const byContent = new Map<string, string>();
  return {
    components,
    refer(names, refusal) {
      const content = JSON.stringify(refusal);
      let name = byContent.get(content);
      if (name === undefined) {
        const slugs = names.map((each) => sample(each).slug).join("-or-");
        const alike = Object.keys(components).filter((one) => one.replace(/\.\d+$/, "") === slugs).length;
        name = alike === 0 ? slugs : `${slugs}.${alike + 1}`;
        byContent.set(content, name);
        components[name] = refusal;
      }
      return { $ref: `#/components/responses/${name}` };
    },
  };
}

function toOperation(endpoint: Endpoint, guards: Guards, refusals: Refusals): Json {
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

/** Whether people open it in a browser: its answers are pages, or lead to one. Programs need not know of other pages. */
function isVisited(answers: Answers): boolean {
  const successes: readonly Success[] = Object.values(answers);
  return successes.some(({ mediaType, headers = [] }) => mediaType === "text/html" || headers.includes("location"));
}

function toResponses(endpoint: Endpoint, isGuarded: boolean, refusals: Refusals): Json {
  const { answers, limit, requestHeaders = [] } = endpoint;
  const mayHave = [...(isGuarded ? [] : LIMIT_HEADERS), ...(requestHeaders.includes("Prefer") ? [APPLIED] : [])];
  const byStatus: Readonly<Record<string, Success | undefined>> = answers;
  const responses: [string, Json][] = Object.entries(answers).map(([status, success]: [string, Success]) => {
    const { description, headers = [] } = success;
    return [status, { description, headers: toHeaders(headers, mayHave), content: toContent(success) }];
  });
  for (const [status, names] of Map.groupBy(listProblems(endpoint), (name) => sample(name).status)) {
    const other = byStatus[status];
    const content = {
      ...(other === undefined ? {} : toContent(other)),
      [PROBLEM_TYPE]: { schema: { allOf: [PROBLEM_REF, plain(toProblemSchema(status, names))] } },
      ...(isVisited(answers) ? { "text/html": { schema: STRING } } : {}),
    };
    const titles = names.map((name) => sample(name).title);
    const description = [...(other === undefined ? [] : [other.description]), ...titles].join(" / ");
    const refusal = { description, headers: toProblemHeaders(names, !isGuarded, limit !== undefined), content };
    responses.push([String(status), other === undefined ? refusals.refer(names, refusal) : refusal]);
  }
  return { ...Object.fromEntries(responses), default: { $ref: "#/components/responses/problem" } };
}

/** What its handler says, and what follows from what it takes. */
function listProblems(endpoint: Endpoint): ProblemName[] {
  const { method, scope, exemptFromLoadShedding, anyHost, body, requestHeaders, problems: own } = endpoint;
  const all = [
    ...ANYWHERE,
    ...(anyHost === true ? [] : (["misdirected"] as const)),
    ...(exemptFromLoadShedding === true ? [] : (["overloaded", "logUnavailable", "projectionFolding"] as const)),
    ...(scope === undefined ? [] : (["missingScope"] as const)),
    ...(body === undefined ? [] : OF_BODY),
    ...(method === "POST" ? (["foreignSite"] as const) : []),
    ...(requestHeaders?.includes("Idempotency-Key") === true ? OF_KEY : []),
    ...own,
  ];
  return [...new Set(all)];
}

/** What a problem of this name looks like; its words depend on the case. */
function sample(name: ProblemName): Problem {
  return (problems[name] as (...words: readonly unknown[]) => Problem)();
}

/** Answered before it is known whether the caller has a limit. */
const BEFORE_CALLER: ReadonlySet<ProblemName> = new Set([
  "misdirected",
  "overloaded",
  "unauthorized",
  "expiredToken",
  "missingScope",
  "foreignSite",
]);

/** Answered before the handler is called, and the day's quota shown. */
const BEFORE_HANDLER: ReadonlySet<ProblemName> = new Set([
  ...BEFORE_CALLER,
  "tooMany",
  "tooLarge",
  "unsupportedType",
  "invalid",
]);

/**
 * What a client may count on, and what else it may find. `limitsAddress`: callers without a token may ask, and have a limit
 * unless they are of this machine; `limitsDay`: the day's quota of messages is shown.
 */
function toProblemHeaders(names: readonly ProblemName[], limitsAddress: boolean, limitsDay: boolean): Json {
  const showsLimit = (name: ProblemName): boolean =>
    (limitsAddress && !BEFORE_CALLER.has(name)) || (limitsDay && !BEFORE_HANDLER.has(name));
  const all = new Set(
    names.flatMap((name) => [...Object.keys(sample(name).headers), ...(showsLimit(name) ? LIMIT_HEADERS : [])]),
  );
  const sure = new Set([...all].filter((header) => names.every((name) => header in sample(name).headers)));
  return toHeaders([...sure], [...all.difference(sure)]);
}

/** What all problems have (RFC 9457). */
const PROBLEM = Type.Object({
  type: Type.String({ format: "uri" }),
  title: Type.String(),
  status: Type.Integer(),
  detail: Type.String(),
  instance: Type.String({ description: "The request's id." }),
});

const PROBLEM_REF = { $ref: "#/components/schemas/problem" };

const PROBLEM_MORE: Readonly<Record<string, TSchema>> = {
  errors: Type.Array(Type.Object({ path: Type.String(), message: Type.String() })),
  run_id: Type.Union([Type.String({ format: "uuid" }), Type.Null()]),
};

/** What these problems say beside the members of all problems. */
function toProblemSchema(status: number, names: readonly ProblemName[]): TSchema {
  const more = new Set(names.flatMap((name) => Object.keys(sample(name).more)));
  return Type.Object({
    type: Type.Unsafe<string>({ enum: names.map((name) => `urn:reachlog:problem:${sample(name).slug}`) }),
    status: Type.Literal(status),
    ...Object.fromEntries([...more].map((name) => [name, Type.Optional(PROBLEM_MORE[name] ?? Type.Unknown())])),
  });
}

function toSecurity(endpoint: Endpoint, guards: Guards): Json[] {
  const scopes = endpoint.scope === undefined ? [] : [endpoint.scope];
  if (guards.guards(endpoint)) return [{ token: scopes }];
  if (endpoint.protection === "session" || endpoint.protection === "form") {
    // A page takes a session alone, what programs read takes a token as well.
    const isPage = endpoint.protection === "form" || endpoint.tag === "console";
    const taken = isPage ? [{ session: scopes }] : [{ token: scopes }, { session: scopes }];
    return guards.guardsConsole ? taken : [...taken, {}];
  }
  // A token is not wanted, but a wrong one is refused.
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

/** With an example of the whole, where it is JSON and has a shape. */
function contentAs(type: string, schema: TSchema): Json {
  const known = plain(schema);
  const example = type === JSON_TYPE ? createExample(known) : undefined;
  return { schema: known, ...(example === undefined ? {} : { example }) };
}

function toHeaders(names: readonly string[], some: readonly string[]): Json {
  const toRef = (name: string) => ({ $ref: `#/components/headers/${name}` });
  return Object.fromEntries([
    ...some.map((name) => [name, toRef(optional(name))] as const),
    ...[...ALWAYS, ...names].map((name) => [name, toRef(name)] as const),
  ]);
}

function parameter(place: "path" | "query" | "header", name: string, description: string): Json {
  return { name, in: place, description, schema: STRING };
}

/** A schema without what TypeBox keeps beside it, and with the formats that others know. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema), (_name, value: unknown) => withKnownFormat(value)) as Json;
}

function withKnownFormat(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("format" in value)) return value;
  const { type: _, format, ...others } = value as Record<string, unknown>;
  const known = FORMATS[String(format)];
  return known === undefined ? value : { ...known, ...others };
}

/** The parts of JSON Schema by which the service describes what it takes and answers. */
interface Schema {
  readonly examples?: readonly unknown[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly type?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** By format, as JSON Schema knows them. */
const OF_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-03-01T08:00:00.000Z",
  uuid: "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11",
  uri: "https://shop.example/",
};

/**
 * A value that fits a schema: what is said to be an example, and what the schema leaves no choice in. Undefined where
 * neither is so, as for a text that could be any.
 */
function createExample(schema: Schema): unknown {
  const given = schema.examples?.[0] ?? schema.const ?? schema.enum?.[0];
  if (given !== undefined) return given;
  const [either] = schema.anyOf ?? [];
  if (either !== undefined) return createExample(either);
  switch (schema.type) {
    case "object": {
      const members = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, createExample(one)] as const);
      return Object.fromEntries(members.filter(([, value]) => value !== undefined));
    }
    case "array": {
      const item = schema.items && createExample(schema.items);
      return item === undefined ? [] : [item];
    }
    case "string":
      return OF_FORMAT[schema.format ?? ""];
    case "integer":
    case "number":
      return Math.max(1, schema.minimum ?? 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return undefined;
  }
}
