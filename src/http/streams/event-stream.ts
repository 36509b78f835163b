import type { EventType, Recorded, LogStore } from "../../../events/event-types-and-codec.ts";
import { hideCodes } from "../../networks/hide-personal-codes.ts";
import { hasScope } from "../../config/parse-api-tokens.ts";
import { createIntakePriority } from "../../delivery/pace-and-circuit-breaker.ts";
import { type Clock, systemTimer, type Timer } from "../../platform/clock-ids-and-timers.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import { bearerToken, type Authentication } from "../access/bearer-tokens.ts";
import type { RequestContext } from "../server/endpoint.ts";
import type { Sessions } from "../access/session.ts";

/** Time in ms between two comments that a stream without events sends, so that proxies do not close the connection. */
const HEARTBEAT_MS = 15_000;

/** Time in ms that a client waits before it connects again after its stream broke. */
const RETRY_MS = 2_000;

/** Minimum time in ms between two messages that tell a page that the log has grown. */
const LOOK_MS = 1_000;

export type EventStream = ReadableStream<Uint8Array<ArrayBuffer>>;

export interface EventStreamQuery {
  /** Position of the first event to send, inclusive. */
  readonly from: number;
  readonly types?: readonly EventType[];
  readonly stream?: string;
}

export interface EventStreamOptions {
  /** True while the stream's reader may read; the stream asks before each message. Default: always true. */
  readonly isKnown?: () => boolean;
  /** The stream calls this when its reader disconnects, or when it ends. */
  readonly onGone?: () => void;
  readonly timer?: Timer;
  /** Slows the stream down while requests wait. Default: no limit. */
  readonly pace?: StreamPace;
}

/**
 * Sends the log as Server-Sent Events (WHATWG HTML, section 9.2): the events from `from` on, then new ones. The `id` of
 * a message is the event's position, from which a reader resumes; its data is the line of a JSON Lines export.
 */
export function openEventStream(
  store: { readonly subscribeBatches: LogStore["subscribeBatches"] },
  query: EventStreamQuery,
  /**
   * Ends the stream when aborted. It also ends when its reader disconnects or, by the next heartbeat, if the reader's
   * token was revoked.
   */
  signal: AbortSignal,
  options: EventStreamOptions = {},
): EventStream {
  const { pace } = options;
  // The log is read at the reader's pace. A slow reader delays no other and takes no memory, because it catches up from
  // the log.
  return createStream(signal, options, async function* (ended) {
    const batches = store.subscribeBatches({ ...query, signal: ended });
    let sent = await pace?.turn(ended);
    for await (const batch of batches) {
      sent?.(batch.length);
      yield batch.map(formatMessage).join("");
      sent = await pace?.turn(ended);
    }
    sent?.(0);
  });
}

/**
 * Sends the log's position as Server-Sent Events: at once if it is `from` or later, then when it grows, at most once in
 * {@link LOOK_MS}. A page that reloads needs no events, so its cost does not grow with the log's traffic.
 */
export function openPositionStream(
  position: () => number,
  from: number,
  signal: AbortSignal,
  options: Omit<EventStreamOptions, "pace"> = {},
): EventStream {
  const { timer = systemTimer } = options;
  return createStream(signal, options, async function* (ended) {
    for (let next = from; !ended.aborted; await waited(LOOK_MS, timer, ended)) {
      if (position() < next) continue;
      next = position() + 1;
      yield `id: ${next - 1}\ndata: ${next - 1}\n\n`;
    }
  });
}

function waited(ms: number, timer: Timer, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const cancel = timer(wake, ms);
  signal.addEventListener("abort", wake);
  return promise.finally(() => {
    cancel();
    // The listener is removed, because a stream may be open for days and adds one each second.
    signal.removeEventListener("abort", wake);
  });
}

/**
 * Creates a stream of server-sent messages. The generator `messages` starts when the first message is read, and must
 * end when its signal aborts.
 */
function createStream(
  signal: AbortSignal,
  { isKnown = () => true, onGone, timer = systemTimer }: EventStreamOptions,
  messages: (ended: AbortSignal) => AsyncGenerator<string, void, void>,
): EventStream {
  const gone = new AbortController();
  const texts = messages(AbortSignal.any([signal, gone.signal]));
  const end = async (): Promise<void> => {
    gone.abort();
    onGone?.();
    await texts.return();
  };
  let next: Promise<string | void> | undefined;
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      start: (controller) => controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\n`)),
      async pull(controller) {
        next ??= texts.next().then(({ value }) => value);
        const beat = heartbeat(timer);
        try {
          const text = await Promise.race([next, beat.text]);
          if (text === undefined || !isKnown()) {
            await end();
            return controller.close();
          }
          if (text !== BEAT) next = undefined;
          controller.enqueue(encoder.encode(text));
        } catch (fault) {
          // A stream that fails is never cancelled by its reader, so it is ended here.
          await end();
          throw fault;
        } finally {
          beat.cancel();
        }
      },
      cancel: end,
    },
    // The stream reads one batch ahead of the one that is being sent.
    { highWaterMark: 1 },
  );
}

const BEAT = ": heartbeat\n\n";

function heartbeat(timer: Timer): { readonly text: Promise<string>; readonly cancel: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>();
  return { text: promise, cancel: timer(() => resolve(BEAT), HEARTBEAT_MS) };
}

function formatMessage(event: Recorded): string {
  const { position, id, stream, version, type, time, data, meta, hash } = hideCodes(event);
  return `id: ${position}\ndata: ${JSON.stringify({ position, id, stream, version, type, time, data, meta, hash })}\n\n`;
}

/** Maximum number of events in a second that all streams together send while requests wait. */
const EVENTS_PER_SECOND = 2_000;

/**
 * Number of events that an event stream is assumed to send each time it is allowed to send, until it reports the real
 * number. One read of the log returns about that many events.
 */
const EXPECTED_EVENTS = 128;

/**
 * A stream that waits for its turn checks at this interval, in ms, if HTTP requests still wait. If none does, it sends
 * at once.
 */
const PACE_LOOK_MS = 1_000;

export type StreamPace = ReturnType<typeof createStreamPace>;

/**
 * Limits all event streams together while requests wait. Their readers catch up from the log later. `requests`: returns
 * how many requests have arrived since the start.
 */
export function createStreamPace(
  requests: () => number,
  clock: Clock,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
) {
  const intake = createIntakePriority(requests);
  /**
   * Time at which the last time slot that a stream was given for sending ends, in ms since the epoch. The next stream
   * that asks gets the time after it.
   */
  let freeAt = 0;

  return {
    /**
     * Resolves when it is the stream's turn to send events, in the order of the calls, or when `signal` aborts. After
     * sending, the stream passes the number of events to the returned function.
     */
    async turn(signal: AbortSignal): Promise<(events: number) => void> {
      let now = clock();
      if (!intake.isBusy(now)) {
        // The service is not busy with requests any more, so each event stream may send at once and need not wait for
        // its turn.
        freeAt = 0;
        return () => {};
      }
      // The event streams send one after the other: each turn starts when the turn granted before it should have ended.
      // If all streams waited equally long, they would all send at once.
      const at = Math.max(freeAt, now);
      freeAt = at + toMs(EXPECTED_EVENTS);
      for (; now < at && intake.isBusy(now) && !signal.aborted; now = clock()) {
        await sleep(Math.min(at - now, PACE_LOOK_MS), signal);
      }
      return (events) => {
        freeAt += toMs(events - EXPECTED_EVENTS);
      };
    },
  };
}

function toMs(events: number): number {
  return (events / EVENTS_PER_SECOND) * 1_000;
}

/**
 * Identifies the reader of an event stream. `name`: the same for a token and all sessions opened with it, so that their
 * streams count together. `isKnown`: returns false once the token or session has ended, even if the stream is still
 * open.
 */
export function identifyReader(
  { authentication, sessions }: { readonly authentication: Authentication; readonly sessions: Sessions },
  { request, metadata, readAddress }: RequestContext,
) {
  const authorization = request.headers.get("authorization");
  if (authorization === null) {
    // Only the cookie is kept, because the request no longer exists when the session is checked later.
    const kept = { headers: new Headers({ cookie: request.headers.get("cookie") ?? "" }) };
    const signedIn = sessions.tokenOf(kept);
    const name = signedIn === undefined ? `address ${toNetwork(readAddress())}` : `caller ${signedIn.name}`;
    const isKnown = (): boolean => {
      // Starts to ask the vault if the session was ended at another instance. The stream uses the result before its
      // next message.
      void sessions.look(kept);
      return sessions.admits(kept);
    };
    return { name, isKnown };
  }
  const token = authentication.identify(bearerToken(authorization) ?? "");
  const isKnown = (): boolean => {
    const current = token && authentication.find(token);
    return current !== undefined && hasScope(current, "read");
  };
  return { name: `caller ${metadata.caller}`, isKnown };
}
