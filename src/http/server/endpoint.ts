import type { Static, TSchema } from "@sinclair/typebox";
import type { ReadResource } from "../../../events/authentication-keys-and-data-reads.ts";
import type { AnyElysia, DocumentDecoration } from "elysia";
import type { DeclaredRefusals, Disclosure } from "../../platform/operation.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { ApiToken, TokenScope } from "../../config/parse-api-tokens.ts";
import type { Notice, ConsolePage } from "../../console/page-context.ts";
import type { EventMetadata } from "../../log/event-log.ts";
import type { RequestSpan } from "../../tracing/tracing.ts";
import type { Allowance } from "../access/rate-limit.ts";
import { UNCHECKED, type Fields, type RequestBody, type SentFile, type SentForm, type Typed } from "./body.ts";
import type { HttpResponse } from "./http-response.ts";
import type { Problem, ProblemName } from "./problem.ts";

/**
 * The callers that an endpoint admits. `open`: all; `strict`: all or, with AUTH_POLICY strict, only callers with a
 * token; `token`: callers with a token; `session`: callers with a token, and signed-in browsers; `form`: only signed-in
 * browsers.
 */
export type Protection = "open" | "strict" | "token" | "session" | "form";

/**
 * An endpoint's protection, with the scope that a caller's token needs. A session always needs `read`; signing out
 * needs no scope.
 */
export type Access =
  "open" | "form" | readonly ["session", "read"] | readonly ["strict" | "token" | "form", TokenScope];

/** Descriptions for the API document of the parameters in an endpoint's path, and of the members of its query. */
export interface PathAndQuery {
  /** Descriptions of the path's parameters, by name without the colon. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/**
 * Declaration of an endpoint, without its body and responses. It decides which callers are admitted, and the OpenAPI
 * document is made from it.
 */
export interface Declaration extends PathAndQuery {
  /** Name of the endpoint's method in generated clients. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service" | "console";
  readonly summary: string;
  readonly description: string;
  readonly protection: Protection;
  /** Scope that a caller's token needs; see {@link Access}. */
  readonly scope?: TokenScope;
  /**
   * The kind of personal data in the endpoint's responses; false for none. Every endpoint with the scope `read` must
   * declare it.
   */
  readonly personalRead?: ReadResource | false;
  /**
   * Descriptions of a GET's input, by member. Members in the path pattern become its parameters, all others the query.
   */
  readonly members?: Readonly<Record<string, string>>;
  /** Request headers that change what the endpoint does. With an `Idempotency-Key`, a repeat gets the first answer. */
  readonly requestHeaders?: readonly RequestHeader[];
  /**
   * Problems that only this endpoint has. Those of all requests, and those that its body, method and headers entail,
   * are added.
   */
  readonly problems?: readonly ProblemName[];
  /** Refusals that the endpoint's operation declares, each of which becomes a problem. */
  readonly refusals?: DeclaredRefusals;
  /** True if the endpoint may take longer to answer than a connection may be idle. */
  readonly isSlow?: true;
  /**
   * A rate limit whose state is in the headers of the endpoint's responses. A refusal shows the state before the
   * request, any other answer the state after it.
   */
  readonly limit?: { readonly name: string; readonly allowance: () => Allowance };
  /** True if the endpoint answers under any load, because a supervisor restarts a service that does not. */
  readonly exemptFromLoadShedding?: true;
  /**
   * True if the endpoint accepts any `Host`, because a cluster or load balancer knows an instance only by its IP
   * address.
   */
  readonly anyHost?: true;
  /**
   * True if pages of other sites may post to the endpoint, because its address alone gives the right to act, and not a
   * session.
   */
  readonly anyOrigin?: true;
  /** Makes the page that a browser gets for a problem. Default: a page of the console. */
  readonly refusalPage?: (problem: Problem, request: Request) => HttpResponse;
  /** Console forms that perform the same operation as this endpoint. */
  readonly form?: Form | readonly Form[];
  /** Id of the API operation that the endpoint performs, if it is a form of the console. */
  readonly apiOperationId?: string;
}

/**
 * A form of the console. The handler of an API operation does the work in the caller's name; then the browser returns
 * to a page with a notice, or shows the result. So the console can do nothing that a program cannot.
 */
export type Form = {
  readonly path: `/console/${string}`;
  /** Endpoint id of the form. Default: the operation's id, followed by `ByForm`. */
  readonly id?: string;
  /** Description of the form's answer. Default: it redirects back with a notice. */
  readonly description?: string;
  /** Body of a form that uploads a file. Default: the form has fields only. */
  readonly upload?: RequestBody<SentForm>;
  /** Converts the form's fields to the operation's body. Default: all fields that are not empty. Throws problems. */
  readonly body?: (fields: Fields, file?: SentFile) => unknown;
} & (
  | {
      /** Returns the sentence that tells the operator what was done, or a notice if something went wrong. */
      readonly notice: (value: never, fields: Fields) => string | Notice;
    }
  | {
      /** Returns the address of the page that shows what was recorded. The browser is redirected there. */
      readonly location: (value: never) => `/${string}`;
    }
  | {
      /** Returns a page that shows the operation's result, for results that are recorded nowhere. */
      readonly page: (value: never, fields: Fields, file: SentFile | undefined) => ConsolePage | Promise<ConsolePage>;
      /**
       * Returns a page that shows a refusal together with the filled-in fields, so that the operator need not fill them
       * in again. Default: a notice.
       */
      readonly refused?: (notice: Notice, fields: Fields) => ConsolePage;
      /** Description of the page in the API document. Default: "The result." */
      readonly pageDescription?: string;
    }
);

export type RequestHeader = "Idempotency-Key" | "Prefer" | "Accept";

type Declared = Omit<Declaration, "id" | "tag" | "protection" | "scope">;

/** Returns a route's `detail`, the part of Elysia's route options that describes it. */
export function declare(id: string, tag: Declaration["tag"], access: Access, declared: Declared): DocumentDecoration {
  const [protection, scope] = [access].flat();
  return { id, tag, protection, ...omitUndefined({ scope }), ...declared } as unknown as DocumentDecoration;
}

/** Returns all that a route declares, as Elysia takes it: its body, its answers, and the rest as its `detail`. */
export function route<const Replies extends object, Body extends object = never>(
  id: string,
  tag: Declaration["tag"],
  access: Access,
  { body, response, ...declared }: Declared & { readonly response: Replies; readonly body?: Body },
) {
  const answered = { response, detail: declare(id, tag, access, declared) };
  type WithBody = [Body] extends [never] ? unknown : { readonly body: Body };
  return (body === undefined ? answered : { ...answered, body }) as typeof answered & WithBody;
}

/** An endpoint's answers that are not problems, by status. */
export type Answers = Readonly<Record<number, Success>>;

export interface Success {
  readonly description: string;
  /** Schema of the answer's JSON body; absent if the body is not JSON, or if there is none. */
  readonly schema?: TSchema;
  /** Media type of an answer's body that is not JSON. */
  readonly mediaType?: string;
  /** Other media types that the caller can ask for, by the query or by `Accept`. */
  readonly otherMediaTypes?: readonly string[];
  readonly headers?: readonly string[];
}

/**
 * A route's `response`: the type of its answer for handlers and clients, and its description for the API document.
 * Elysia does not check answers, because the compiler ensures that handlers keep the type.
 */
export interface Reply<Body> extends Success, Typed<Body> {}

type Immutable<T> = T extends readonly (infer Member)[]
  ? readonly Immutable<Member>[]
  : T extends object
    ? { readonly [Name in keyof T]: Immutable<T[Name]> }
    : T;

export function reply<Schema extends TSchema>(
  description: string,
  schema: Schema,
  headers: readonly string[] = [],
): Reply<Immutable<Static<Schema>>> {
  return { description, schema, headers, "~standard": UNCHECKED };
}

/** Describes an answer of text that is not JSON, or of no body at all. */
export function textReply(description: string, rest: Omit<Success, "description" | "schema"> = {}): Reply<string> {
  return { description, ...rest, "~standard": UNCHECKED };
}

/** A registered route, and what it declares. */
export interface Endpoint extends Declaration {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly problems: readonly ProblemName[];
  readonly answers: Answers;
  readonly body: RequestBody<unknown> | undefined;
}

/**
 * Returns the endpoints of an app in the order in which they were registered. Throws if one lacks an obligatory
 * declaration.
 */
export function listEndpoints({ routes }: AnyElysia): readonly Endpoint[] {
  return routes.map(({ method, path, hooks: { detail, body, response } }) => {
    const declared = detail as Declaration | undefined;
    const isWhole = declared?.protection !== undefined && response !== undefined && (method === "POST") === !!body;
    if (!isWhole)
      throw new Error(`${method} ${path} declares no operation, no answer, or no body that fits its method`);
    if (declared.scope === "read" && declared.personalRead === undefined)
      throw new Error(`${method} ${path} declares no personalRead: what personal data its answers hold, or false`);
    const route = { method: method as Endpoint["method"], path, answers: response as Answers };
    return { problems: [], ...declared, ...placeMembers(path, declared), ...route, body: body as RequestBody<unknown> };
  });
}

/** Divides the members of a GET's input into parameters of the path and the query. */
function placeMembers(path: string, { members }: Declaration): PathAndQuery {
  if (members === undefined) return {};
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  const [named = [], others = []] = [true, false].map((isNamed) =>
    Object.entries(members).filter(([name]) => inPath.has(name) === isNamed),
  );
  const parameters = named.length === 0 ? {} : { parameters: Object.fromEntries(named) };
  return { ...parameters, query: Object.fromEntries(others) };
}

/** A request that has arrived, before its caller is known. */
export interface Arrival {
  readonly request: Request;
  readonly endpoint: Endpoint;
  readonly readAddress: () => string;
  /** Response headers that are specific to this request. */
  readonly headers: Record<string, string>;
}

/** A request that is being answered, with its caller known. */
export interface RequestContext extends Arrival {
  /** Metadata of events that the request causes; names the caller and the request. */
  readonly metadata: EventMetadata;
  /** Domains whose clicks the caller's token may record; absent if it may record all. */
  readonly links?: ApiToken["links"] | undefined;
  /**
   * The personal data in this response, if a handler knows it better than the endpoint's declaration; `nothing` for
   * none.
   */
  disclosed?: Disclosure | "nothing" | undefined;
  /** Trace span of the request, set once the caller is known; undefined if nothing is traced. */
  span?: RequestSpan | undefined;
}
