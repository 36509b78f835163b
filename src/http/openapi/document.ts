import type { TSchema } from "@sinclair/typebox";
import { ROUTES, type Route } from "../routes.ts";
import { OPERATIONS, TAGS, type Operation, type Success } from "./operations.ts";
import { documented, LIMIT_HEADERS, problemSchema } from "./problems.ts";

/** Problems that a request may meet on any path. */
const ANYWHERE = ["unauthorized", "misdirected", "tooMany", "internal"] as const;

const ABOUT = `Every error is application/problem+json (RFC 9457), and names its kind in \`type\`.
GET answers HEAD too; any other method is answered 405 with \`Allow\`, any other path 404.
Lengths are counted in UTF-16 units. A body holds no member twice, no NUL and no half of a surrogate pair.
\`RateLimit\` and \`RateLimit-Policy\` tell what is left of the limits that apply to the caller.
What is not HTTP/1.1, and what has more than some 16 KB of headers, is refused with an empty answer and hung up on.`;

/** The headers of every answer. */
const ALWAYS = ["x-request-id", "traceparent", "x-content-type-options"];

const HEADERS: Readonly<Record<string, string>> = {
  "x-request-id": "The caller's, or one that was made.",
  traceparent: "W3C Trace Context: the caller's, or one that was made.",
  "x-content-type-options": "nosniff",
  ratelimit: "What is left of each limit that applies (IETF draft).",
  "ratelimit-policy": "Each limit that applies (IETF draft).",
  "retry-after": "Seconds.",
  "www-authenticate": "What is wanted: a bearer token, or an authorization by X.",
  location: "Where the browser goes.",
  "set-cookie": "HttpOnly.",
};

type Json = Readonly<Record<string, unknown>>;

const STRING = { type: "string" };

/** Headers that only some answers of a status have. They stand among the components a second time, by another name. */
const SOMETIMES = [...LIMIT_HEADERS, "retry-after"];

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

const PROBLEM_TYPE = "application/problem+json";

const TAKEN: Readonly<Record<string, string>> = {
  "Idempotency-Key": "1 to 255 printable ASCII characters, bare or quoted: makes a repeat safe.",
  Prefer: "wait=N waits for the end of the run, up to 300 seconds (RFC 7240).",
  Accept: "application/json asks for JSON in place of a redirect.",
};

/** The service as OpenAPI 3.1 tells it. `guards`: whether this deployment wants a token on a path; `cookie`: its name. */
export function createDocument(version: string, guards: (path: string) => boolean, cookie: string): Json {
  const paths = Object.entries(OPERATIONS).map(([path, operation]) => {
    const route = ROUTES.get(path);
    if (route === undefined) throw new Error(`${path} is documented and does not exist`);
    return [path, { [route.method.toLowerCase()]: operationOf(operation, route, path, guards) }];
  });
  return {
    openapi: "3.1.0",
    info: {
      title: "reachlog",
      version,
      description: ABOUT,
      contact: { name: "Whoever runs this service" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(paths),
    components: {
      headers: Object.fromEntries([
        ...Object.entries(HEADERS).map(([name, description]) => [
          name,
          { description, required: true, schema: STRING },
        ]),
        ...SOMETIMES.map((name) => [optional(name), { description: HEADERS[name], schema: STRING }]),
      ]),
      responses: {
        problem: { description: "Any other problem.", content: { [PROBLEM_TYPE]: { schema: plain(problemSchema) } } },
      },
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: cookie },
      },
    },
  };
}

function operationOf(operation: Operation, route: Route, path: string, guards: (path: string) => boolean): Json {
  const { id, tag, summary, description, query = {}, takes = [], body } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: securityOf(path, route, guards),
    parameters: [
      ...Object.entries(query).map(([name, description]) => parameter("query", name, description)),
      ...takes.map((name) => parameter("header", name, TAKEN[name] ?? "")),
    ],
    ...(body === undefined ? {} : { requestBody: requestBodyOf(body, route) }),
    responses: responsesOf(operation, route, guards(path)),
  };
}

function responsesOf({ answers, problems, tellsQuota }: Operation, route: Route, isGuarded: boolean): Json {
  const limits = { ofAddress: !isGuarded, ofDay: tellsQuota === true };
  const busy = route.always === true ? [] : (["overloaded"] as const);
  const told = documented([...ANYWHERE, ...busy, ...problems], limits);
  const mayLimit = limits.ofAddress ? LIMIT_HEADERS : [];
  const responses = Object.entries(answers).map(
    ([status, success]) => [status, responseOf(success, mayLimit)] as const,
  );
  for (const { status, titles, headers, optional: some, schema } of told) {
    const other = answers[status];
    const content = {
      ...(other === undefined ? {} : contentOf(other)),
      [PROBLEM_TYPE]: { schema: plain(schema) },
    };
    const description = [...(other === undefined ? [] : [other.says]), ...titles].join(" / ");
    responses.push([String(status), { description, headers: headersOf(headers, some), content }]);
  }
  return { ...Object.fromEntries(responses), default: { $ref: "#/components/responses/problem" } };
}

function securityOf(path: string, { protection }: Route, guards: (path: string) => boolean): Json[] {
  if (guards(path)) return [{ token: [] }];
  // A token is not wanted, but a wrong one is refused.
  return protection === "session" ? [{ session: [] }, {}] : [{}, { token: [] }];
}

function requestBodyOf(body: TSchema, { form }: Route): Json {
  const type = form === true ? "application/x-www-form-urlencoded" : "application/json";
  return {
    required: "required" in body && body["required"] !== undefined,
    content: { [type]: { schema: plain(body) } },
  };
}

function responseOf(success: Success, mayHave: readonly string[]): Json {
  const { says, headers = [] } = success;
  return { description: says, headers: headersOf(headers, mayHave), content: contentOf(success) };
}

function contentOf({ schema, isPage }: Success): Json {
  if (isPage === true) return { "text/html": { schema: { type: "string" } } };
  return schema === undefined ? {} : { "application/json": { schema: plain(schema) } };
}

function headersOf(names: readonly string[], some: readonly string[]): Json {
  const refOf = (name: string) => ({ $ref: `#/components/headers/${name}` });
  return Object.fromEntries([
    ...some.map((name) => [name, refOf(optional(name))] as const),
    ...[...ALWAYS, ...names].map((name) => [name, refOf(name)] as const),
  ]);
}

function parameter(place: "query" | "header", name: string, description: string): Json {
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
