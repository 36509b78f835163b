import { createHash } from "node:crypto";
import type { IdempotencyKey } from "eventstore-lite";
import { errorFields, type Logger } from "../platform/logger.ts";
import { STREAMS, type EventMetadata, type EventLog } from "../log/event-log.ts";
import type { Answer } from "./answer.ts";
import { Problem, problemAnswer, problems } from "./problem.ts";

/** The IETF draft's String (quoted), or the bare key that most clients send; printable ASCII. */
const KEY = /^(?:"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\]){1,255})"|([\x21\x23-\x7e]{1,255}))$/;

/** Problems after which something was done: they are the first answer too. All others leave nothing behind. */
const FINAL_PROBLEMS: ReadonlySet<string> = new Set(["delivery-refused", "delivery-in-doubt"]);

/** What identifies a request: the same key counts per route and caller. */
export interface Keyed {
  /** The `Idempotency-Key`. */
  readonly header: string;
  readonly route: string;
  readonly body: unknown;
  readonly metadata: EventMetadata;
}

/** Makes POSTs with an `Idempotency-Key` safe to repeat: an answer is kept for two days, and the key for ever. */
export interface Idempotency {
  /**
   * Runs `perform` for the first request with this key and gives its answer to all repeats. `perform` gets a key for
   * its own append, so that a crash between the append and the answer does nothing twice either, nor anything else.
   */
  once(request: Keyed, perform: Perform, isOver?: IsOver): Promise<Answer>;
}

export type Perform = (appendKey: IdempotencyKey) => Promise<Answer>;

/** Whether a kept answer no longer counts, since what it began came to nothing: then the request is performed anew. */
export type IsOver = (kept: Answer) => Promise<boolean>;

/** An answer and the body that it answers. */
interface KeptAnswer extends Answer {
  readonly digest: string;
}

/** One request with a key, as the log knows it. */
interface Scoped {
  /** The key, of one route and caller. */
  readonly scope: string;
  /** What is asked under it. */
  readonly digest: string;
  readonly metadata: EventMetadata;
}

export function createIdempotency(eventLog: EventLog, logger: Logger): Idempotency {
  const inFlight = new Map<string, { digest: string; answer: Promise<KeptAnswer> }>();

  return {
    async once(request, perform, isOver = async () => false) {
      const scoped = scopedOf(request);
      const { scope, digest } = scoped;
      const running = inFlight.get(scope);
      if (running !== undefined) {
        if (running.digest !== digest) throw problems.keyReused();
        return await running.answer;
      }
      const answer = answerOnce({ eventLog, logger, isOver }, scoped, perform);
      inFlight.set(scope, { digest, answer });
      // Only the map's own copy is watched here; the caller below gets the failure.
      answer.catch(() => {}).finally(() => inFlight.delete(scope));
      return await answer;
    },
  };
}

async function answerOnce(
  { eventLog, logger, isOver }: { eventLog: EventLog; logger: Logger; isOver: IsOver },
  { scope, digest, metadata }: Scoped,
  perform: Perform,
): Promise<KeptAnswer> {
  const stream = STREAMS.answer(scope);
  let earlier = 0;
  for await (const event of eventLog.store.read({ stream, backwards: true, limit: 1 })) {
    if (event.type !== "RequestAnswered") continue;
    if (event.data.digest !== digest) throw problems.keyReused();
    if (event.meta.erased === true) throw problems.keyExpired();
    if (!(await isOver(event.data))) return event.data;
    earlier = event.version;
  }
  const { status, headers, body } = await performed(perform, { key: `request/${scope}`, digest }, metadata);
  const answer = { digest, status, headers: keptHeaders(headers), body };
  try {
    await eventLog.append(stream, [{ type: "RequestAnswered", data: answer }], metadata, {
      key: `${stream}/${earlier}`,
    });
  } catch (fault) {
    // What was asked for is done, whatever becomes of the answer: a repeat makes it again from what the log holds.
    logger.warn("an answer was not kept", { request_id: metadata.request_id, ...errorFields(fault) });
  }
  return answer;
}

async function performed(perform: Perform, appendKey: IdempotencyKey, metadata: EventMetadata): Promise<Answer> {
  try {
    return await perform(appendKey);
  } catch (fault) {
    if (fault instanceof Problem && FINAL_PROBLEMS.has(fault.slug)) {
      return problemAnswer(fault, metadata.request_id ?? "");
    }
    throw fault;
  }
}

function scopedOf({ header, route, body, metadata }: Keyed): Scoped {
  const match = KEY.exec(header.trim());
  const key = match?.[1]?.replace(/\\(["\\])/g, "$1") ?? match?.[2];
  if (key === undefined) throw problems.malformed("The Idempotency-Key wants 1 to 255 printable ASCII characters.");
  // Without the key, which the log does not hold, nobody finds out by trying what the body was.
  const digest = sha256(JSON.stringify([key, body ?? null]));
  return { scope: sha256(JSON.stringify([route, metadata.caller, key])), digest, metadata };
}

/** Those headers that belong to the answer itself, not to the connection or this request. */
function keptHeaders(headers: Answer["headers"]): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => KEPT_HEADERS.has(name)));
}

const KEPT_HEADERS: ReadonlySet<string> = new Set(["content-type", "cache-control"]);

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
