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
 * Who may call: `open`: every caller. `strict`: callers with a token where AUTH_POLICY is strict, else every caller.
 * `token`: callers with a token. `session`: browsers that signed in, and callers with a token; the console's pages answer
 * all others with a form that asks for one. `form`: browsers that signed in, for what a page's form sends.
 */
export type Protection = "open" | "strict" | "token" | "session" | "form";

/** The protection, with the scope that a token needs. No session is without `read`; signing out needs no scope. */
export type Access =
  "open" | "form" | readonly ["session", "read"] | readonly ["strict" | "token" | "form", TokenScope];

/** Declares a route, beside its body and its answers. Admission and the OpenAPI document are made from it. */
export interface Declaration {
  /** By which generated clients call it. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service" | "console";
  readonly summary: string;
  readonly description: string;
  readonly protection: Protection;
  /** Of {@link Access}. */
  readonly scope?: TokenScope;
  /** What personal data its answers hold; false: none. Every operation of the scope `read` says it. */
  readonly personalRead?: ReadResource | false;
  /** What stands in the place of each `:name` of the path. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Members of a GET's input, with their descriptions: those that the path names are parameters, the others the query. */
  readonly members?: Readonly<Record<string, string>>;
  /** Headers that change what is done. With an `Idempotency-Key`, a repeat gets the first answer. */
  readonly requestHeaders?: readonly RequestHeader[];
  /** Beside those that any request may meet, and those that follow from a body, from POST and from a key. */
  readonly problems?: readonly ProblemName[];
  /** Refusals of its operation. */
  readonly refusals?: DeclaredRefusals;
  /** The answer may take longer than a connection may be idle. */
  readonly isSlow?: true;
  /** A limit that its answers show: as it was before for a refusal, as it is after for anything else. */
  readonly limit?: { readonly name: string; readonly allowance: () => Allowance };
  /** Answered however busy the service is: a supervisor asks it whether to restart the service. */
  readonly exemptFromLoadShedding?: true;
  /** Whatever the request calls this host: a cluster and a load balancer know an instance by its address alone. */
  readonly anyHost?: true;
  /** Of the console, doing the same. */
  readonly form?: Form | readonly Form[];
  /** Of a form of the console: id of the operation of the API that it does. */
  readonly apiOperationId?: string;
}

/**
 * A form of the console: the operation's handler does what is asked, in the name of the caller that signed in, and the
 * browser is led back to a page with a notice, or shown the result. So the console can do nothing that a program cannot.
 */
export type Form = {
  readonly path: `/console/${string}`;
  /** Default: that of the operation, `ByForm`. */
  readonly id?: string;
  /** Default: that it leads back with a notice. */
  readonly description?: string;
  /** Instead of fields alone: what is sent with a file. */
  readonly upload?: RequestBody<SentForm>;
  /** The body that the operation takes for these fields; default: the fields as they are. Throws problems. */
  readonly body?: (fields: Fields, file?: SentFile) => unknown;
} & (
  | {
      /** What was done, in a sentence; a notice where it is not as it should be. */
      readonly notice: (value: never, fields: Fields) => string | Notice;
    }
  | {
      /** Shows the result in place of the page: for what is recorded nowhere. */
      readonly page: (value: never, fields: Fields) => ConsolePage;
      /** Shows a refusal in the same way, with its status, where the fields took a person work; default: a notice. */
      readonly refused?: (notice: Notice, fields: Fields) => ConsolePage;
      /** Default: "The result." */
      readonly pageDescription?: string;
    }
);

export type RequestHeader = "Idempotency-Key" | "Prefer" | "Accept";

type Declared = Omit<Declaration, "id" | "tag" | "protection" | "scope">;

/** A route's `detail`. */
export function declare(id: string, tag: Declaration["tag"], access: Access, declared: Declared): DocumentDecoration {
  const [protection, scope] = [access].flat();
  return { id, tag, protection, ...omitUndefined({ scope }), ...declared } as unknown as DocumentDecoration;
}

/** All that a route declares, as Elysia takes it: its body and its answers, and the rest as its `detail`. */
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

/** The answers that are no problems, by status. */
export type Answers = Readonly<Record<number, Success>>;

export interface Success {
  readonly description: string;
  /** JSON; absent: no body. */
  readonly schema?: TSchema;
  /** Of what is no JSON. */
  readonly mediaType?: string;
  /** Into which the query or `Accept` may turn it. */
  readonly otherMediaTypes?: readonly string[];
  readonly headers?: readonly string[];
}

/**
 * A route's `response`: its type for the handler and for clients, and what the document says. Elysia checks nothing by it:
 * a handler that compiles gives what it promises.
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

/** Of text that is no JSON, or of no body at all. */
export function textReply(description: string, rest: Omit<Success, "description" | "schema"> = {}): Reply<string> {
  return { description, ...rest, "~standard": UNCHECKED };
}

/** One line of the table: a route as it is registered, and what it declares. */
export interface Endpoint extends Declaration {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly problems: readonly ProblemName[];
  readonly answers: Answers;
  readonly body: RequestBody<unknown> | undefined;
}

/** The endpoints that an app's routes declare, in their order. Throws where a route leaves something out. */
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

/** Tells the members that stand in the path from those of the query. */
function placeMembers(path: string, { members }: Declaration): Pick<Declaration, "parameters" | "query"> {
  if (members === undefined) return {};
  const inPath = new Set([...path.matchAll(/:(\w+)/g)].map(([, name]) => name));
  const [named = [], others = []] = [true, false].map((isNamed) =>
    Object.entries(members).filter(([name]) => inPath.has(name) === isNamed),
  );
  const parameters = named.length === 0 ? {} : { parameters: Object.fromEntries(named) };
  return { ...parameters, query: Object.fromEntries(others) };
}

/** A request on its way to its answer. */
export interface RequestContext {
  readonly request: Request;
  readonly endpoint: Endpoint;
  /** Who and what causes the events of this request. */
  readonly metadata: EventMetadata;
  /** Domains whose clicks the caller may record; absent: all. */
  readonly links?: ApiToken["links"] | undefined;
  readonly readAddress: () => string;
  /** Of the answer, and of each request alone. */
  readonly headers: Record<string, string>;
  /** What the answer shows, as far as its handler knows more than the endpoint declares; `nothing`: no personal data. */
  disclosed?: Disclosure | "nothing" | undefined;
  /** From the time on when it is known who calls. */
  span?: RequestSpan | undefined;
}
