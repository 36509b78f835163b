import type { TSchema } from "@sinclair/typebox";
import type { IdempotencyKey } from "eventstore-lite";
import type { EventMetadata } from "../../log/event-log.ts";
import type { Answer } from "./answer.ts";
import type { RequestBody } from "./body.ts";
import type { ProblemName } from "./problem.ts";
import type { Allowance } from "../access/rate-limit.ts";

/**
 * Who may ask: `open`: anybody. `strict`: whoever has a token where AUTH_POLICY is strict, else anybody. `token`: whoever
 * has a token. `session`: a browser that signed in; its page asks the others for a token. `form`: the same for what a page's
 * form sends.
 */
export type Protection = "open" | "strict" | "token" | "session" | "form";

/**
 * One line of the table: where an operation is, and who may ask for it. A segment of the path that begins with a colon
 * stands for whatever is sent there. A GET has no body, and each POST has one.
 */
export type Endpoint<Deps> = {
  readonly path: `/${string}`;
  readonly protection: Protection;
  /** Answered however busy the service is: a supervisor asks it whether to restart the service. */
  readonly always?: true;
  /** Whatever the request calls this host: a cluster and a load balancer know an instance by its address alone. */
  readonly anyHost?: true;
} & (
  | { readonly method: "GET"; readonly operation: Operation<Deps> & { readonly body?: never } }
  | { readonly method: "POST"; readonly operation: PostOperation<Deps> }
);

/** What an endpoint takes, what it answers, and how. The OpenAPI document is made of it. */
export interface Operation<Deps, Body = never> {
  /** By which generated clients call it. */
  readonly id: string;
  readonly tag: "outreach" | "tracking" | "service" | "console";
  readonly summary: string;
  readonly description: string;
  /** What stands in the place of each `:name` of the path. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Headers that change what is done. Where an `Idempotency-Key` is taken, a repeat gets the first answer. */
  readonly takes?: readonly TakenHeader[];
  readonly answers: Answers;
  /** Beside those that any request may meet, and those that follow from a body, from POST and from a key. */
  readonly problems: readonly ProblemName[];
  /** The answer may take longer than a connection may be idle. */
  readonly isSlow?: true;
  /** A limit that its answers show: as it was before for a refusal, as it is after for anything else. */
  readonly limit?: { readonly name: string; readonly allowance: (deps: Deps) => Allowance };
  /** True if the stored response is stale because its run failed; the request is then executed again. */
  readonly isOver?: (deps: Deps, kept: Answer) => Promise<boolean>;
  /** A repeat waits until the first one is answered, at whatever instance: more is done than an append with its key. */
  readonly isExclusive?: true;
  /** Of a form of the console: id of the operation of the API that it does. */
  readonly does?: string;
  /** Answers, or throws what problem.ts knows. */
  readonly handle: (deps: Deps, asked: Asked<Body>) => Answer | Promise<Answer>;
}

export type PostOperation<Deps, Body = never> = Operation<Deps, Body> & {
  readonly body: RequestBody<[Body] extends [never] ? unknown : Body>;
};

/** The operation as it is, with its handler's body typed by its schema. */
export function post<Deps, Body>(
  operation: Operation<Deps, Body> & { readonly body: RequestBody<Body> },
): Operation<Deps, Body> & { readonly body: RequestBody<Body> } {
  return operation;
}

export type TakenHeader = "Idempotency-Key" | "Prefer" | "Accept";

type Status = 200 | 202 | 302 | 303 | 400 | 401 | 503;

/** The answers that are no problems, by status: at least one. */
export type Answers = { [S in Status]: Readonly<Record<S, Success> & Partial<Record<Status, Success>>> }[Status];

export interface Success {
  readonly says: string;
  /** JSON; absent: no body. */
  readonly schema?: TSchema;
  /** Of what is no JSON. */
  readonly mediaType?: string;
  /** Into which the query may turn it. */
  readonly otherMediaTypes?: readonly string[];
  readonly headers?: readonly string[];
}

/** A request that was admitted, and whose body fits. */
export interface Asked<Body> {
  readonly request: Request;
  /** What was sent in the place of each `:name` of the path, decoded. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly body: Body;
  /** Who and what causes the events of this request. */
  readonly metadata: EventMetadata;
  /** Under which its event is appended; undefined: it came without an `Idempotency-Key`. */
  readonly key: IdempotencyKey | undefined;
  /** The caller's address. */
  readonly addressOf: () => string;
}

/** The path as it was sent: from the first slash behind the host to the query. */
export function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return query === -1 ? url.slice(start) : url.slice(start, query);
}

/** What a path has in the place of each `:name` of an endpoint's, as it was sent; undefined: it is another path. */
export function segmentsOf(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const [names, sent] = [template.split("/"), path.split("/")];
  if (names.length !== sent.length) return undefined;
  const segments: Record<string, string> = {};
  for (const [at, name] of names.entries()) {
    const segment = sent[at] ?? "";
    if (name.startsWith(":") && segment !== "") segments[name.slice(1)] = segment;
    else if (name !== segment) return undefined;
  }
  return segments;
}

/** The same decoded; undefined: it is another path, or encodes no text. */
export function parametersOf(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const segments = segmentsOf(template, path);
  if (segments === undefined) return undefined;
  try {
    return Object.fromEntries(Object.entries(segments).map(([name, segment]) => [name, decodeURIComponent(segment)]));
  } catch (fault) {
    if (fault instanceof URIError) return undefined;
    throw fault;
  }
}
