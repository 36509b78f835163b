import { hash } from "node:crypto";
import { StoreClosed, type IdempotencyKey } from "eventstore-lite";
import type { MakeId } from "../../platform/clock.ts";
import { errorFields, requestFields } from "../../platform/logger.ts";
import { STREAMS, type EventMetadata, eventAt } from "../../log/event-log.ts";
import { takeLease, type HeldLease, type LeaseDeps } from "../../log/lease.ts";
import { toHttpResponse, whole, type HttpResponse } from "./answer.ts";
import type { RequestContext } from "./endpoint.ts";
import { Problem, problemAnswer, problems } from "./problem.ts";

/** A key is the IETF draft's String (quoted), or the bare key that most clients send, of printable ASCII. */
export const KEY_CHARACTERS_MAX = 255;
const KEY = new RegExp(
  String.raw`^(?:"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,${KEY_CHARACTERS_MAX}})"|([\x21\x23-\x7e]{1,${KEY_CHARACTERS_MAX}}))$`,
);

/** Problems after which something was done: they count as the first answer. All others leave nothing behind. */
const FINAL_PROBLEMS: ReadonlySet<string> = new Set(["delivery-refused", "delivery-in-doubt"]);

interface OnceOptions {
  /** True if the stored response is stale because its run failed; the request is then executed again. */
  readonly isOver?: (kept: HttpResponse) => Promise<boolean>;
  /** True if a repeat at another instance waits for the first one's answer instead of running at the same time. */
  readonly isExclusive?: boolean;
}

/**
 * Returns the key under which a request's event is appended; undefined without a header. It is enough if that event
 * gives the whole answer: a repeat finds the first one's id by it, and no answer is stored.
 */
export function readAppendKey(call: Call, body: unknown): IdempotencyKey | undefined {
  const header = call.request.headers.get("idempotency-key");
  return header === null ? undefined : toAppendKey(toScoped(call, header, body));
}

/** The parts of a request that its key applies to. */
type Call = Pick<RequestContext, "request" | "endpoint" | "metadata">;

type Perform = (appendKey: IdempotencyKey) => Promise<HttpResponse>;

interface KeptAnswer extends HttpResponse {
  readonly digest: string;
}

/** A request with a key, as the log knows it. */
interface Scoped {
  /** The key's hash, with its route and caller. */
  readonly scope: string;
  /** The hash of key and body. */
  readonly digest: string;
  readonly metadata: EventMetadata;
}

export interface IdempotencyDeps extends LeaseDeps {
  readonly makeId: MakeId;
  /** Aborts when the service begins to stop. Then no request waits for another instance. */
  readonly stopping: AbortSignal;
}

export type Idempotency = ReturnType<typeof createIdempotency>;

/**
 * Makes POSTs with an `Idempotency-Key` safe to repeat at any instance. An answer is kept for two days, and the key for
 * ever.
 */
export function createIdempotency(deps: IdempotencyDeps) {
  const inFlight = new Map<string, { digest: string; answer: Promise<KeptAnswer> }>();

  return {
    /**
     * Runs `perform` for the first request with this key, and gives its answer to all repeats; of two instances, the
     * first stored answer counts. `perform` appends under its key (undefined without a header), so a crash repeats
     * nothing.
     */
    async once<Returned>(
      call: Call,
      body: unknown,
      perform: (key: IdempotencyKey | undefined) => Promise<Returned>,
      options: OnceOptions = {},
    ): Promise<Returned> {
      const header = call.request.headers.get("idempotency-key");
      // Only a key is worth reading the stored answers. Forms accept none.
      const takesKey = call.endpoint.requestHeaders?.includes("Idempotency-Key") === true;
      if (header === null || !takesKey) return await perform(undefined);
      const scoped = toScoped(call, header, body);
      const { scope, digest } = scoped;
      const running = inFlight.get(scope);
      if (running !== undefined && running.digest !== digest) throw problems.keyReused();
      if (running !== undefined) return whole(await running.answer) as Returned;
      const answer = answerOnce(deps, scoped, async (key) => toHttpResponse(await perform(key)), options);
      inFlight.set(scope, { digest, answer });
      // Swallow here; the caller awaits the same promise.
      answer.catch(() => {}).finally(() => inFlight.delete(scope));
      return whole(await answer) as Returned;
    },
  };
}

async function answerOnce(
  deps: IdempotencyDeps,
  scoped: Scoped,
  perform: Perform,
  { isOver = async () => false, isExclusive = false }: OnceOptions,
): Promise<KeptAnswer> {
  const known = await findKept(deps, scoped, isOver);
  if ("answer" in known) return known.answer;
  if (!isExclusive) return answerNow(deps, scoped, perform, known.version);
  await using _lease = await untilLeased(deps, scoped);
  // The previous holder of the lease may have answered.
  const found = await findKept(deps, scoped, isOver);
  return "answer" in found ? found.answer : await answerNow(deps, scoped, perform, found.version);
}

/** Returns the answer that still counts, or the version after which the next one is appended. */
async function findKept(
  { eventLog }: IdempotencyDeps,
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
  { eventLog, logger }: IdempotencyDeps,
  { scope, digest, metadata }: Scoped,
  perform: Perform,
  version: number,
): Promise<KeptAnswer> {
  const stream = STREAMS.answer(scope);
  const { status, headers, body } = await performed(perform, toAppendKey({ scope, digest }), metadata);
  const kept = Object.entries(headers).filter(([name]) => KEPT_HEADERS.has(name));
  const answer = { digest, status, headers: Object.fromEntries(kept), body };
  try {
    const newEvent = { type: "RequestAnswered", data: answer } as const;
    const { first, repeated } = await eventLog.append(stream, [newEvent], metadata, { key: `${stream}/${version}` });
    if (!repeated) return answer;
    const earlier = await eventAt(eventLog.store, first);
    if (earlier.type === "RequestAnswered") return earlier.data;
  } catch (fault) {
    // The work is done, even if its answer is not stored: a repeat makes the answer again from the log.
    logger.warn("an answer was not kept", { ...requestFields(metadata), ...errorFields(fault) });
  }
  return answer;
}

/** How long a repeat waits at most after the instance that runs the first request has died. */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;

/** How often a waiting repeat checks whether the first request is answered. */
const LEASE_POLL_MS = 250;

/**
 * Hex digits of a key's hash that name its lease. A lease's row stays in the log's database, so keys share 256 of them:
 * of two requests that share one by chance, the second waits for the first.
 */
const LEASE_DIGITS = 2;

/** Resolves with the lease once no other instance runs a request with this key. */
async function untilLeased(deps: IdempotencyDeps, { scope }: Scoped): Promise<HeldLease> {
  const name = STREAMS.answer(scope.slice(0, LEASE_DIGITS));
  const terms = { name, holder: deps.makeId(), ttlMs: LEASE_TTL_MS, renewMs: LEASE_RENEW_MS };
  for (;;) {
    const lease = await takeLease(deps, terms);
    if (lease !== undefined) return lease;
    await deps.sleep(LEASE_POLL_MS, deps.stopping);
    if (deps.stopping.aborted) throw new StoreClosed();
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

function toAppendKey({ scope, digest }: Pick<Scoped, "scope" | "digest">): IdempotencyKey {
  return { key: `request/${scope}`, digest };
}

/** Combines a key with its route and caller. Throws the problem 400 for an invalid key. */
function toScoped({ endpoint, metadata }: Call, header: string, body: unknown): Scoped {
  const match = KEY.exec(header.trim());
  const key = match?.[1]?.replace(/\\(["\\])/g, "$1") ?? match?.[2];
  if (key === undefined) throw problems.malformed(`The Idempotency-Key ${describeFault(header)}`);
  // The log does not hold the key, so the body cannot be guessed by trying.
  const digest = hash("sha256", JSON.stringify([key, body ?? null]));
  return { scope: hash("sha256", JSON.stringify([endpoint.path, metadata.caller, key])), digest, metadata };
}

function describeFault(header: string): string {
  const separator = /^(?:"(?:[^"\\]|\\.)*"|[^\s",;]+)\s*([,;])/.exec(header.trim())?.[1];
  if (separator === ",") return "was sent more than once. Send one key.";
  if (separator === ";") return "has parameters. Send the key alone.";
  return `needs 1 to ${KEY_CHARACTERS_MAX} printable ASCII characters. Send it bare without spaces, or quoted.`;
}

/** Headers that belong to the answer itself, not to the connection or this request. */
const KEPT_HEADERS: ReadonlySet<string> = new Set(["content-type", "cache-control"]);
