import type { Static, TSchema } from "@sinclair/typebox";
import type { ReadResource } from "../../../events/access.ts";
import type { AnyElysia, DocumentDecoration } from "elysia";
import type { DeclaredRefusals, Disclosure } from "../../platform/operation.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import type { ApiToken, TokenScope } from "../../config/tokens.ts";
import type { Notice, ConsolePage } from "../../console/page-context.ts";
import type { EventMetadata } from "../../log/event-log.ts";
import type { RequestSpan } from "../../tracing/tracing.ts";
import type { Allowance } from "../access/rate-limit.ts";
import { UNCHECKED, type Fields, type RequestBody, type SentFile, type SentForm, type Typed } from "./body.ts";
import type { ProblemName } from "./problem.ts";

/**
 * `open` admits every caller; `strict` too, unless AUTH_POLICY is strict; `token` only callers with a token. `session`
 * also admits signed-in browsers; console pages ask all others for a token. `form` admits signed-in browsers only.
 */
export type Protection = "open" | "strict" | "token" | "session" | "form";

/** The protection, with the scope that a token needs. A session always needs `read`; signing out needs no scope. */
export type Access =
  "open" | "form" | readonly ["session", "read"] | readonly ["strict" | "token" | "form", TokenScope];

/** Declares a route apart from its body and answers. Admission and the OpenAPI document are derived from it. */
export interface Declaration {
  /** The name by which generated clients call it. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service" | "console";
  readonly summary: string;
  readonly description: string;
  readonly protection: Protection;
  /** The scope of its {@link Access}. */
  readonly scope?: TokenScope;
  /** The personal data that its answers hold; false for none. Every operation of the scope `read` declares it. */
  readonly personalRead?: ReadResource | false;
  /** Descriptions of the parameters in its path, by the `name` of each `:name`. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /**
   * Members of a GET's input, with their descriptions. Those that the path names are parameters, the others are the
   * query.
   */
  readonly members?: Readonly<Record<string, string>>;
  /** Headers that change what is done. With an `Idempotency-Key`, a repeat gets the first answer. */
  readonly requestHeaders?: readonly RequestHeader[];
  /**
   * Its own problems, in addition to those of any request, and those that follow from a body, from POST and from a key.
   */
  readonly problems?: readonly ProblemName[];
  /** Refusals of its operation. */
  readonly refusals?: DeclaredRefusals;
  /** True if the answer may take longer than a connection may be idle. */
  readonly isSlow?: true;
  /** A limit that its answers show: for a refusal, as it was before; for any other answer, as it is afterwards. */
  readonly limit?: { readonly name: string; readonly allowance: () => Allowance };
  /** True if it is answered under any load: a supervisor asks it whether to restart the service. */
  readonly exemptFromLoadShedding?: true;
  /** True if any host name may be used: a cluster and a load balancer know an instance by its address alone. */
  readonly anyHost?: true;
  /** The console's forms that do the same. */
  readonly form?: Form | readonly Form[];
  /** For a form of the console: the id of the API operation that it performs. */
  readonly apiOperationId?: string;
}

/**
 * A form of the console. The operation's handler does the work in the name of the signed-in caller; the browser returns
 * to a page with a notice, or shows the result. Thus the console can do nothing that a program cannot.
 */
export type Form = {
  readonly path: `/console/${string}`;
  /** Default: the operation's id, followed by `ByForm`. */
  readonly id?: string;
  /** Default: it redirects back with a notice. */
  readonly description?: string;
  /** The body with a file, if more than fields are sent. */
  readonly upload?: RequestBody<SentForm>;
  /** Converts the fields to the body of the operation. Default: the fields that are not empty. Throws problems. */
  readonly body?: (fields: Fields, file?: SentFile) => unknown;
} & (
  | {
      /** Returns a sentence about what was done; a notice if something is wrong. */
      readonly notice: (value: never, fields: Fields) => string | Notice;
    }
  | {
      /** Shows the result as a page, for results that are recorded nowhere. */
      readonly page: (value: never, fields: Fields) => ConsolePage;
      /** Shows a refusal as a page with its status, if the fields cost a person work. Default: a notice. */
      readonly refused?: (notice: Notice, fields: Fields) => ConsolePage;
      /** Default: "The result." */
      readonly pageDescription?: string;
    }
);

export type RequestHeader = "Idempotency-Key" | "Prefer" | "Accept";

type Declared = Omit<Declaration, "id" | "tag" | "protection" | "scope">;

/** Returns a route's `detail`. */
export function declare(id: string, tag: Declaration["tag"], access: Access, declared: Declared): DocumentDecoration {
  const [protection, scope] = [access].flat();
  return { id, tag, protection, ...omitUndefined({ scope }), ...declared } as unknown as DocumentDecoration;
}

/** Returns all that a route declares, as Elysia takes it: its body and its answers, and the rest as its `detail`. */
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

/** The answers other than problems, by status. */
export type Answers = Readonly<Record<number, Success>>;

export interface Success {
  readonly description: string;
  /** The schema of a JSON body; absent for any other body, or none. */
  readonly schema?: TSchema;
  /** The media type of a body that is not JSON. */
  readonly mediaType?: string;
  /** Media types that the query or `Accept` can choose instead. */
  readonly otherMediaTypes?: readonly string[];
  readonly headers?: readonly string[];
}

/**
 * A route's `response`: its type for the handler and for clients, and its part of the document. Elysia checks nothing
 * by it: the compiler ensures that handlers keep the type.
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

/** A route as it is registered, and what it declares. */
export interface Endpoint extends Declaration {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly problems: readonly ProblemName[];
  readonly answers: Answers;
  readonly body: RequestBody<unknown> | undefined;
}

/** Returns the endpoints that an app's routes declare, in their order. Throws if a route leaves something out. */
export function listEndpoints({ routes }: Pick<AnyElysia, "routes">): readonly Endpoint[] {
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

/** Separates the members in the path from those in the query. */
function placeMembers(path: string, { members }: Declaration): Pick<Declaration, "parameters" | "query"> {
  if (members === undefined) return {};
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  const [named = [], others = []] = [true, false].map((isNamed) =>
    Object.entries(members).filter(([name]) => inPath.has(name) === isNamed),
  );
  const parameters = named.length === 0 ? {} : { parameters: Object.fromEntries(named) };
  return { ...parameters, query: Object.fromEntries(others) };
}

/** A request that is being answered. */
export interface RequestContext {
  readonly request: Request;
  readonly endpoint: Endpoint;
  /** Names the caller and the request as the cause of its events. */
  readonly metadata: EventMetadata;
  /** Domains whose clicks the caller may record; absent for all. */
  readonly links?: ApiToken["links"] | undefined;
  readonly readAddress: () => string;
  /** Headers of the answer that are specific to this request. */
  readonly headers: Record<string, string>;
  /**
   * Tells what the answer shows, if its handler knows more than the endpoint declares; `nothing` for no personal data.
   */
  disclosed?: Disclosure | "nothing" | undefined;
  /** Set once the caller is known. */
  span?: RequestSpan | undefined;
}
