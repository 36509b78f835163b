import type { TSchema } from "@sinclair/typebox";
import { ROUTES, type Route } from "../routes.ts";
import { OPERATIONS, type Operation, type Success } from "./operations.ts";
import { documented } from "./problems.ts";

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

const STRING = { type: "string" };

const TAKEN: Readonly<Record<string, string>> = {
  "Idempotency-Key": "1 to 255 printable ASCII characters, bare or quoted: makes a repeat safe.",
  Prefer: "wait=N waits for the end of the run, up to 300 seconds (RFC 7240).",
  Accept: "application/json asks for JSON in place of a redirect.",
};

type Json = Readonly<Record<string, unknown>>;

/** The service as OpenAPI 3.1 tells it. `guards`: whether this deployment wants a token on a path; `cookie`: its name. */
export function createDocument(version: string, guards: (path: string) => boolean, cookie: string): Json {
  const paths = Object.entries(OPERATIONS).map(([path, operation]) => {
    const route = ROUTES.get(path);
    if (route === undefined) throw new Error(`${path} is documented and does not exist`);
    return [path, { [route.method.toLowerCase()]: operationOf(operation, route, securityOf(path, route, guards)) }];
  });
  return {
    openapi: "3.1.0",
    info: { title: "reachlog", version, description: ABOUT },
    servers: [{ url: "/" }],
    paths: Object.fromEntries(paths),
    components: {
      headers: Object.fromEntries(
        Object.entries(HEADERS).map(([name, description]) => [name, { description, required: true, schema: STRING }]),
      ),
      securitySchemes: {
        token: { type: "http", scheme: "bearer" },
        session: { type: "apiKey", in: "cookie", name: cookie },
      },
    },
  };
}

function operationOf(
  { summary, query = {}, takes = [], body, answers, problems }: Operation,
  route: Route,
  security: Json[],
): Json {
  const busy = route.always === true ? [] : (["overloaded"] as const);
  const told = documented([...ANYWHERE, ...busy, ...problems]);
  const responses = Object.entries(answers).map(([status, success]) => [status, responseOf(success)] as const);
  for (const { status, titles, headers, schema } of told) {
    const other = answers[status];
    const content = {
      ...(other === undefined ? {} : contentOf(other)),
      "application/problem+json": { schema: plain(schema) },
    };
    const description = [...(other === undefined ? [] : [other.says]), ...titles].join(" / ");
    responses.push([String(status), { description, headers: headersOf(headers), content }]);
  }
  return {
    summary,
    security,
    parameters: [
      ...Object.entries(query).map(([name, description]) => parameter("query", name, description)),
      ...takes.map((name) => parameter("header", name, TAKEN[name] ?? "")),
    ],
    ...(body === undefined ? {} : { requestBody: requestBodyOf(body, route) }),
    responses: Object.fromEntries(responses),
  };
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

function responseOf(success: Success): Json {
  return { description: success.says, headers: headersOf(success.headers ?? []), content: contentOf(success) };
}

function contentOf({ schema, isPage }: Success): Json {
  if (isPage === true) return { "text/html": { schema: { type: "string" } } };
  return schema === undefined ? {} : { "application/json": { schema: plain(schema) } };
}

function headersOf(names: readonly string[]): Json {
  return Object.fromEntries([...ALWAYS, ...names].map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

function parameter(place: "query" | "header", name: string, description: string): Json {
  return { name, in: place, description, schema: STRING };
}

/** A schema without what TypeBox keeps beside it. */
function plain(schema: TSchema): Json {
  return JSON.parse(JSON.stringify(schema)) as Json;
}
