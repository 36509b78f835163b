import { classifyError } from "../../log/classify-store-error.ts";
import { formatShare, ProjectionFolding } from "../../projector/late-projections.ts";
import { MomentFolding } from "../../projector/operation-states-as-of.ts";
import { SKEW_REMEDY, skewInWords } from "../../log/log-time-and-clock-skew.ts";
import type { ApiToken, TokenScope } from "../../config/parse-api-tokens.ts";
import type { NextStep } from "../../console/page-context.ts";
import type { RefusalKind, ShownRefusal } from "../../platform/operation.ts";
import type { ErrorKind } from "../../platform/service-error.ts";
import { type HttpResponse, html } from "./http-response.ts";
import { renderPage } from "../../console/document.tsx";
import { errorPage } from "../../console/pages/error-page.tsx";

/** Text and next step of a problem's page, which a person sees in place of the JSON for programs. */
interface ForPeople {
  /** Text that says what happened, and what to do. Default: the problem's detail. It repeats nothing of the request. */
  readonly words?: string;
  readonly nextStep?: NextStep;
}

interface Extra extends ForPeople {
  readonly headers?: Readonly<Record<string, string>>;
  readonly more?: Readonly<Record<string, unknown>>;
}

/** A refusal of a request, as callers see it (RFC 9457). `detail` is for people and reveals no internals. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly slug: string;
  readonly status: number;
  readonly title: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly more: Readonly<Record<string, unknown>>;
  /** Text and next step that a browser shows in place of the JSON that programs get. */
  readonly people: ForPeople;
  constructor(status: number, slug: string, detail: string, { headers = {}, more = {}, ...people }: Extra = {}) {
    super(detail);
    this.status = status;
    this.slug = slug;
    this.title = slug.charAt(0).toUpperCase() + slug.slice(1).replaceAll("-", " ");
    this.headers = headers;
    this.more = more;
    this.people = people;
  }
  /** Returns this problem with more headers and, where given, other words for people. */
  with(headers: Readonly<Record<string, string>>, people: ForPeople = {}): Problem {
    const { status, slug, message, more } = this;
    return new Problem(status, slug, message, {
      ...this.people,
      ...people,
      headers: { ...this.headers, ...headers },
      more,
    });
  }
}

const AUTHORIZE: NextStep = { href: "/social/auth", label: "Authorize an X account" };
export const AUTHORIZE_AGAIN: NextStep = { href: "/social/auth", label: "Authorize again" };
const SET_UP: NextStep = { href: "/setup", label: "What to set up" };
const SIGN_IN: NextStep = { href: "/", label: "Sign in" };
const TO_OVERVIEW: NextStep = { href: "/", label: "To the overview" };

/**
 * Headers that suggest a retry after 5 seconds. A response has them if its cause may soon be over, such as a log that
 * refuses appends, too many open streams or states that are still being folded.
 */
export const RETRY_LATER = { "retry-after": "5" };
const SOON: Extra = { headers: RETRY_LATER };
const retryAfter = (seconds: number): Extra => ({ headers: { "retry-after": String(seconds) } });

/** Adds the list `errors` to a problem, with one entry: the place in the request, and what is wrong there. */
const misfit = (path: string, message: string): Extra => ({ more: { errors: [{ path, message }] } });

/** Headers of a 401 that says that a bearer token is wrong, malformed or expired (RFC 6750, section 3). */
export const INVALID_TOKEN = { "www-authenticate": 'Bearer realm="reachlog", error="invalid_token"' };

/** Says for people which field of the request is wrong. */
function inWords([first]: readonly { path: string; message: string }[] = []): string {
  const name = first?.path.replace(/^[?/]/, "").split("/")[0]?.replaceAll("_", " ") ?? "";
  return name === "" ? "The request does not match its schema." : `The field ${name}: ${first!.message}.`;
}

export const problems = {
  malformed: (detail: string) => new Problem(400, "malformed-request", detail),
  unauthorized: () =>
    new Problem(401, "unauthorized", "This endpoint needs a valid bearer token.", {
      headers: { "www-authenticate": 'Bearer realm="reachlog"' },
      words: "Sign in to see this page, or send an API token.",
      nextStep: SIGN_IN,
    }),
  expiredToken: () =>
    new Problem(401, "expired-token", "The token has expired. Create one with `reachlog token new`.", {
      headers: INVALID_TOKEN,
      nextStep: SIGN_IN,
    }),
  missingScope: (scope: TokenScope) =>
    new Problem(403, "missing-scope", `The token lacks the scope \`${scope}\`: use one that has it.`, {
      headers: { "www-authenticate": `Bearer realm="reachlog", error="insufficient_scope", scope="${scope}"` },
      nextStep: { href: "/", label: "The console" },
    }),
  otherDomain: (links: ApiToken["links"]) =>
    new Problem(403, "other-domain", `The token records clicks of ${links?.join(", ")} only.`),
  notAuthorized: () =>
    new Problem(401, "not-authorized", "No X account is authorized: open /social/auth in a browser.", {
      headers: { "www-authenticate": 'OAuth realm="reachlog", authorization_uri="/social/auth"' },
      words: "No X account is authorized.",
      nextStep: AUTHORIZE,
    }),
  authorizationFailed: (detail: string) =>
    new Problem(400, "authorization-failed", `${detail} Nothing was stored.`, { nextStep: AUTHORIZE_AGAIN }),
  wrongAccount: () =>
    new Problem(403, "wrong-account", "Another X account is linked or required; nothing was stored.", {
      words:
        "You authorized a different X account from the one linked here or named by X_ACCOUNT. Nothing was stored. Change the account at X, and authorize again. To link another account for good, change X_ACCOUNT where it is set, and run reachlog account unlink first.",
      nextStep: AUTHORIZE_AGAIN,
    }),
  foreignSite: () => new Problem(403, "foreign-site", "A page of another site may not do this."),
  wrongSignature: () => new Problem(403, "wrong-signature", "The request does not show the secret that is set."),
  notFound: () => new Problem(404, "not-found", "There is nothing at this path."),
  methodNotAllowed: (allow: string) =>
    new Problem(405, "method-not-allowed", `This path answers ${allow}.`, { headers: { allow } }),
  running: (runId: string | undefined) =>
    new Problem(409, "run-in-progress", "One run at a time: another one is in progress.", {
      more: { run_id: runId ?? null },
      nextStep: { href: runId === undefined ? "/" : `/runs/${encodeURIComponent(runId)}`, label: "The run" },
    }),
  unreadableFile: (why: string) => new Problem(422, "unreadable-file", `Nothing imported: ${why}.`),
  unusableSelection: (path: string, why: string) =>
    new Problem(422, "unusable-selection", `No run was started. ${why}`, misfit(path, why)),
  unusableConversion: (path: string, why: string) =>
    new Problem(422, "unusable-conversion", `Nothing was recorded. ${why}.`, misfit(path, why)),
  unusableRules: (names: readonly string[] = []) =>
    new Problem(422, "unusable-rules", "Nothing was compared: a rule is invalid.", {
      more: {
        errors: names.map((name) => ({ path: `/${name}`, message: "Expected a value that the setting accepts" })),
      },
    }),
  verifying: () =>
    new Problem(409, "verification-in-progress", "One verification at a time: another one is in progress."),
  contradicted: () =>
    new Problem(
      503,
      "log-contradicted",
      "The log contradicts its last checkpoint, so nothing was signed. Run reachlog audit verify.",
    ),
  tooLarge: (limit: number) => new Problem(413, "body-too-large", `The body is larger than ${limit} bytes.`),
  unsupportedType: (wanted = "application/json") =>
    new Problem(415, "unsupported-media-type", `Send ${wanted} in UTF-8, uncompressed.`),
  misdirected: () => new Problem(421, "misdirected-request", "This host is not served here."),
  invalid: (errors: readonly { path: string; message: string }[]) =>
    new Problem(422, "invalid-request", "The request does not match its schema.", {
      words: inWords(errors),
      more: { errors },
    }),
  keyReused: () => new Problem(422, "idempotency-key-reused", "Use a new key: this one had another body."),
  externalIdReused: () =>
    new Problem(409, "external-id-reused", "This external_id had another body before; nothing was recorded now."),
  unknownClick: () => new Problem(404, "unknown-click", "The log has no click with this id."),
  keyExpired: () =>
    new Problem(
      422,
      "idempotency-key-expired",
      "This key was used, and its answer is no longer stored; nothing was done now.",
    ),
  tooMany: (seconds: number) =>
    new Problem(429, "too-many-requests", "This address sends too many requests.", retryAfter(seconds)),
  tooManyStreams: () => new Problem(429, "too-many-streams", "This caller has too many streams open.", SOON),
  dailyLimit: (limit: number, seconds: number) =>
    new Problem(429, "daily-limit-reached", `Today's ${limit} messages are used up.`, {
      ...retryAfter(seconds),
      words: `Today's ${limit} messages are used up; the overview shows when the quota resets.`,
      nextStep: TO_OVERVIEW,
    }),
  windowClosed: (opensAt: string, seconds: number) =>
    new Problem(429, "window-closed", `The sending window is closed until ${opensAt}. Start the run then.`, {
      ...retryAfter(seconds),
      more: { opens_at: opensAt },
      nextStep: TO_OVERVIEW,
    }),
  internal: () => new Problem(500, "internal-error", "An internal error; the service logged it."),
  refusedByNetwork: (detail: string) => new Problem(502, "delivery-refused", detail),
  networkFailed: (detail: string) => new Problem(502, "network-failed", detail),
  notConfigured: (channel: string) =>
    new Problem(503, "channel-not-configured", `The ${channel} channel has no credentials.`),
  xNotConfigured: () =>
    new Problem(503, "network-not-configured", "X_CLIENT_ID is not set.", {
      words:
        "X is not configured. Set X_CLIENT_ID, and X_CLIENT_SECRET where the app at X has one, then restart the service. reachlog doctor lists what else is missing.",
    }),
  noTemplate: () =>
    new Problem(503, "no-message-template", "MESSAGE_TEMPLATE is not set.", {
      words: "There is no message yet: MESSAGE_TEMPLATE is not set.",
      nextStep: SET_UP,
    }),
  clockSkewed: (skewMs: number) =>
    new Problem(503, "clock-skewed", `No run starts: ${skewInWords(skewMs)}; ${SKEW_REMEDY}.`, SOON),
  logUnavailable: (isNothingDone: boolean) =>
    new Problem(
      503,
      "log-unavailable",
      isNothingDone
        ? "The event log refuses appends now; nothing was done for this request."
        : "The event log is unavailable now; what was recorded before stays recorded.",
      // The response suggests a retry only if nothing was done.
      isNothingDone ? SOON : {},
    ),
  projectionFolding: (message: string, share: number) =>
    new Problem(503, "projection-folding", `${message}. Try again later.`, {
      ...SOON,
      words: `The service has started and is reading the event log for this page: ${formatShare(share)} is done. Clicks are recorded meanwhile. Reload the page in a moment.`,
    }),
  overloaded: () =>
    new Problem(503, "overloaded", "Too many requests are in flight; nothing was done for this one.", SOON),
  logInDoubt: () =>
    new Problem(
      503,
      "log-in-doubt",
      "It is not known yet whether this was recorded. Send it again with its Idempotency-Key: it is recorded once.",
    ),
  notRecordedYet: () =>
    new Problem(
      503,
      "not-recorded-yet",
      "A message of this request may have been sent just now, and its outcome is not recorded yet. Repeat the request.",
      SOON,
    ),
  deliveryInDoubt: (detail: string) => new Problem(504, "delivery-in-doubt", detail),
} as const;

export type ProblemName = keyof typeof problems;

const STATUS_OF_REFUSAL: Readonly<Record<RefusalKind, number>> = {
  not_found: 404,
  conflict: 409,
  invalid: 422,
  usage: 422,
  configuration: 503,
};

/** Converts a refusal that an operation declares to a problem. */
export function declaredProblem({ name, kind, sentence, more }: ShownRefusal): Problem {
  return new Problem(STATUS_OF_REFUSAL[kind], name.replaceAll("_", "-"), sentence, { more });
}

/** Kinds of failure by which the log, or the key store, refuses an append without recording it. */
const REFUSED_APPEND: readonly (ErrorKind | undefined)[] = ["full", "overloaded"];

/**
 * Converts the fault of an append that is the first act of a request. If the log refused it, the problem says that
 * nothing was done.
 */
export const appendFault = (fault: unknown): unknown => nothingDoneIf([...REFUSED_APPEND, "closed"], fault);

/**
 * Converts the fault of an append under an idempotency key. An earlier request with this key may have been recorded, so
 * the problem suggests a repeat, which finds that record.
 */
export const keyedAppendFault = (fault: unknown): unknown => {
  const told = appendFault(fault);
  return told === fault ? fault : problems.logUnavailable(false).with(RETRY_LATER);
};

/**
 * Returns a function that awaits a promise. If the promise rejects, that function throws the error that `toFault` makes
 * of the reason.
 */
const refaulted =
  (toFault: (fault: unknown) => unknown) =>
  <T>(work: Promise<T>): Promise<T> =>
    work.catch((fault: unknown) => {
      throw toFault(fault);
    });

/**
 * Waits for an append that is the first act of a request. If the log refuses it, the problem says that nothing was
 * done.
 */
export const appendedOrNothing = refaulted(appendFault);

/**
 * Waits for work that first records what it will do. If the log refuses that record, the problem says that nothing was
 * done. A closed log does not prove that: it may have closed after the record.
 */
export const startedOrNothing = refaulted((fault) => nothingDoneIf(REFUSED_APPEND, fault));

/**
 * Waits for work that a repeat of the request completes. If it fails with a 503, the problem suggests a retry, however
 * much was done already.
 */
export const repeatable = refaulted((fault) => {
  const problem = toProblem(fault);
  return problem?.status === 503 ? problem.with(RETRY_LATER) : fault;
});

function nothingDoneIf(kinds: readonly (ErrorKind | undefined)[], fault: unknown): unknown {
  return kinds.includes(classifyError(fault)) ? problems.logUnavailable(true) : fault;
}

const logUnavailable = (_fault: Error, isRead: boolean): Problem => problems.logUnavailable(isRead);
const networkFailed = ({ message }: Error): Problem => problems.networkFailed(message);

/**
 * The problem for each kind of failure. Undefined for a fault of the service itself, which is logged and answered with
 * a plain 500.
 */
const PROBLEM_OF_KIND: Readonly<Record<ErrorKind, ((fault: Error, isRead: boolean) => Problem) | undefined>> = {
  usage: undefined,
  configuration: undefined,
  damaged: undefined,
  invalid: undefined,
  not_found: undefined,
  conflict: problems.keyReused,
  busy: logUnavailable,
  overloaded: logUnavailable,
  full: logUnavailable,
  closed: logUnavailable,
  in_doubt: problems.logInDoubt,
  unavailable: networkFailed,
  rate_limited: networkFailed,
  unauthorized: problems.notAuthorized,
  rejected: networkFailed,
  stopped: networkFailed,
};

/**
 * Returns the problem for a fault; undefined for a fault of the service itself. `isRead`: true if the request changes
 * nothing.
 */
export function toProblem(fault: unknown, isRead = false): Problem | undefined {
  if (fault instanceof Problem) return fault;
  if (fault instanceof ProjectionFolding) return problems.projectionFolding(fault.message, fault.share);
  if (fault instanceof MomentFolding) return problems.projectionFolding(fault.message, 0);
  const kind = classifyError(fault);
  return kind === undefined ? undefined : PROBLEM_OF_KIND[kind]?.(fault as Error, isRead);
}

/** Converts a problem to a response for programs. `instance` is the request id. */
export function problemAnswer(problem: Problem, instance: string): HttpResponse {
  const body = {
    type: `urn:reachlog:problem:${problem.slug}`,
    title: problem.title,
    status: problem.status,
    detail: problem.message,
    instance,
    ...problem.more,
  };
  return {
    status: problem.status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...problem.headers },
    body: JSON.stringify(body),
  };
}

/**
 * True if the caller wants a page and not JSON: browsers accept `text/html` by name, programs accept JSON or anything.
 */
export function wantsPage({ headers }: Request): boolean {
  const accepted = headers.get("accept") ?? "";
  return accepted.includes("text/html") && !accepted.includes("json");
}

/** Converts a problem to a page with a next step, with the status and headers that programs get. */
export function problemPage({ status, title, message, headers, people }: Problem, requestId: string): HttpResponse {
  const page = errorPage({ title, words: people.words ?? message, nextStep: people.nextStep, requestId });
  return html(status, renderPage(page), headers);
}
