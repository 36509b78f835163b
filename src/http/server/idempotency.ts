import { hash } from "node:crypto";
import { StoreClosed, type IdempotencyKey } from "eventstore-lite";
import { errorFields, requestFields } from "../../platform/logger.ts";
import { STREAMS, type EventMetadata, eventAt, type LogContext } from "../../log/event-log.ts";
import { takeLease, type HeldLease } from "../../log/leases-and-roles.ts";
import { toHttpResponse, whole, type HttpResponse } from "./http-response.ts";
import type { RequestContext } from "./endpoint.ts";
import { Problem, problemAnswer, problems } from "./problem.ts";

/**
 * Maximum length of an idempotency key, in characters of printable ASCII; either quoted, as the IETF draft's String, or
 * bare, as most clients send it.
 */
export const KEY_CHARACTERS_MAX = 255;
const KEY = new RegExp(
  String.raw`^(?:"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,${KEY_CHARACTERS_MAX}})"|([\x21\x23-\x7e]{1,${KEY_CHARACTERS_MAX}}))$`,
);

/**
 * Problems that are stored as the answer to an idempotency key, because the network was asked, and a repeat must not
 * ask it again. After any other problem, a repeat is executed again.
 */
const FINAL_PROBLEMS: ReadonlySet<string> = new Set(["delivery-refused", "delivery-in-doubt"]);

interface OnceOptions {
  /** True if the stored response is stale because its run failed. A repeat is then executed again. */
  readonly isOver?: (kept: HttpResponse) => Promise<boolean>;
  /**
   * True if a repeat at another instance waits for the first request's response, instead of being executed at the same
   * time.
   */
  readonly isExclusive?: boolean;
}

/**
 * Returns the key under which a request's only event is appended; undefined without an `Idempotency-Key`. No answer is
 * stored, because a repeat finds the first request's event by this key.
 */
export function readAppendKey(call: RequestContext, body: unknown): IdempotencyKey | undefined {
  const header = call.request.headers.get("idempotency-key");
  return header === null ? undefined : toAppendKey(toScoped(call, header, body));
}

type Perform = (appendKey: IdempotencyKey) => Promise<HttpResponse>;

interface KeptAnswer extends HttpResponse {
  readonly digest: string;
}

/** A request with an idempotency key. Only hashes of the key go into the log. */
interface Scoped {
  /** Hash of route, caller and key, which identifies the request. */
  readonly scope: string;
  /** Hash of key and body, which shows if a key is used again with another body. */
  readonly digest: string;
  readonly metadata: EventMetadata;
}

export type Idempotency = ReturnType<typeof createIdempotency>;

/**
 * Makes POST requests with an `Idempotency-Key` safe to repeat at any instance. A response is kept for two days; later
 * repeats are refused. After `stopping` aborts, no request waits for another instance with the same key.
 */
export function createIdempotency(context: LogContext, stopping: AbortSignal) {
  const inFlight = new Map<string, { digest: string; answer: Promise<KeptAnswer> }>();

  return {
    /**
     * Runs `perform` for the first request with its idempotency key, and returns the response to all repeats. If
     * several were stored, the first one counts. `perform` appends under the key, so that a repeat after a crash has no
     * second effect.
     */
    async once<Returned>(
      call: RequestContext,
      body: unknown,
      perform: (key: IdempotencyKey | undefined) => Promise<Returned>,
      options: OnceOptions = {},
    ): Promise<Returned> {
      const header = call.request.headers.get("idempotency-key");
      // Without a key nothing is stored, so nothing is looked up. Forms accept no key.
      const takesKey = call.endpoint.requestHeaders?.includes("Idempotency-Key") === true;
      if (header === null || !takesKey) return await perform(undefined);
      const scoped = toScoped(call, header, body);
      const { scope, digest } = scoped;
      const running = inFlight.get(scope);
      if (running !== undefined && running.digest !== digest) throw problems.keyReused();
      if (running !== undefined) return whole(await running.answer) as Returned;
      const answer = answerOnce(context, scoped, async (key) => toHttpResponse(await perform(key)), {
        stopping,
        ...options,
      });
      inFlight.set(scope, { digest, answer });
      // The rejection is handled by the caller, which awaits the same promise.
      answer.catch(() => {}).finally(() => inFlight.delete(scope));
      return whole(await answer) as Returned;
    },
  };
}

async function answerOnce(
  context: LogContext,
  scoped: Scoped,
  perform: Perform,
  { stopping, isOver = async () => false, isExclusive = false }: OnceOptions & { readonly stopping: AbortSignal },
): Promise<KeptAnswer> {
  const known = await findKept(context, scoped, isOver);
  if ("answer" in known) return known.answer;
  if (!isExclusive) return answerNow(context, scoped, perform, known.version);
  await using _lease = await untilLeased(context, scoped, stopping);
  // The request that held the lease before may have stored its response.
  const found = await findKept(context, scoped, isOver);
  return "answer" in found ? found.answer : await answerNow(context, scoped, perform, found.version);
}

/**
 * Returns the stored response to an idempotency key if it is still valid; else the version of the stream at which a new
 * response is appended.
 */
async function findKept(
  { eventLog }: LogContext,
  { scope, digest }: Scoped,
  isOver: NonNullable<OnceOptions["isOver"]>,
): Promise<{ readonly answer: KeptAnswer } | { readonly version: number }> {
  for await (const event of eventLog.store.read({ stream: STREAMS.answer(scope), backwards: true, limit: 1 })) {
    if (event.type !== "RequestAnswered") continue;
    if (event.data.digest !== digest) throw problems.keyReused();
    if (event.meta.erased === true) throw problems.keyExpired();
    return (await isOver(event.data)) ? { version: event.version } : { answer: event.data };
  }
  return { version: 0 };
}

async function answerNow(
  { eventLog, logger }: LogContext,
  scoped: Scoped,
  perform: Perform,
  version: number,
): Promise<KeptAnswer> {
  const { scope, digest, metadata } = scoped;
  const stream = STREAMS.answer(scope);
  const { status, headers, body } = await performed(perform, toAppendKey(scoped), metadata);
  const kept = Object.entries(headers).filter(([name]) => KEPT_HEADERS.has(name));
  const answer = { digest, status, headers: Object.fromEntries(kept), body };
  try {
    const newEvent = { type: "RequestAnswered", data: answer } as const;
    const { first, repeated } = await eventLog.append(stream, [newEvent], metadata, { key: `${stream}/${version}` });
    if (!repeated) return answer;
    const earlier = await eventAt(eventLog.store, first);
    if (earlier.type === "RequestAnswered") return earlier.data;
  } catch (fault) {
    // The request was executed, even if its response cannot be stored. A repeat finds in the log what it did.
    logger.warn("an answer was not kept", { ...requestFields(metadata), ...errorFields(fault) });
  }
  return answer;
}

/**
 * Duration of the lease in ms: if the instance with the first request dies, a waiting repeat is executed after this
 * time.
 */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;

/** Time between two attempts of a waiting repeat to take the lease of the first request. */
const LEASE_POLL_MS = 250;

/**
 * Number of hex digits of the key's hash that name its lease. Leases are rows that stay in the database, so all keys
 * share 256 of them; a request may wait for another one whose key has the same digits.
 */
const LEASE_DIGITS = 2;

/**
 * Waits until no other instance runs a request with this idempotency key, and returns the lease. Throws if the service
 * stops.
 */
async function untilLeased(context: LogContext, { scope }: Scoped, stopping: AbortSignal): Promise<HeldLease> {
  const name = STREAMS.answer(scope.slice(0, LEASE_DIGITS));
  const terms = { name, holder: context.makeId(), ttlMs: LEASE_TTL_MS, renewMs: LEASE_RENEW_MS };
  for (;;) {
    const lease = await takeLease(context, terms);
    if (lease !== undefined) return lease;
    await context.sleep(LEASE_POLL_MS, stopping);
    if (stopping.aborted) throw new StoreClosed();
  }
}

async function performed(perform: Perform, appendKey: IdempotencyKey, metadata: EventMetadata): Promise<HttpResponse> {
  try {
    return await perform(appendKey);
  } catch (fault) {
    if (fault instanceof Problem && FINAL_PROBLEMS.has(fault.slug)) {
      return problemAnswer(fault, metadata.request_id ?? "");
    }
    throw fault;
  }
}

function toAppendKey({ scope, digest }: Scoped): IdempotencyKey {
  return { key: `request/${scope}`, digest };
}

/**
 * Hashes an idempotency key with the request's route and caller, and with its body. Throws the problem 400 for an
 * invalid key.
 */
function toScoped({ endpoint, metadata }: RequestContext, header: string, body: unknown): Scoped {
  const match = KEY.exec(header.trim());
  const key = match?.[1]?.replace(/\\(["\\])/g, "$1") ?? match?.[2];
  if (key === undefined) throw problems.malformed(`The Idempotency-Key ${describeFault(header)}`);
  // The hash covers the idempotency key too. The log does not hold the key, so its readers cannot find the body by
  // hashing guesses.
  const digest = hash("sha256", JSON.stringify([key, body ?? null]));
  return { scope: hash("sha256", JSON.stringify([endpoint.path, metadata.caller, key])), digest, metadata };
}

function describeFault(header: string): string {
  const separator = /^(?:"(?:[^"\\]|\\.)*"|[^\s",;]+)\s*([,;])/.exec(header.trim())?.[1];
  if (separator === ",") return "was sent more than once. Send one key.";
  if (separator === ";") return "has parameters. Send the key alone.";
  return `needs 1 to ${KEY_CHARACTERS_MAX} printable ASCII characters. Send it bare without spaces, or quoted.`;
}

/**
 * Response headers that are stored with an answer for its repeats. Others belong to the connection or to a single
 * request.
 */
const KEPT_HEADERS: ReadonlySet<string> = new Set(["content-type", "cache-control"]);
