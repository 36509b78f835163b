import type { EventType, Recorded, LogStore } from "../../../events/catalog.ts";
import { hideCodes } from "../../networks/hide-personal-codes.ts";
import { hasScope } from "../../config/tokens.ts";
import { createIntakePriority } from "../../delivery/rate-limiter.ts";
import { type Clock, systemTimer, type Timer } from "../../platform/clock.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import { bearerToken, type Authentication } from "../access/bearer-tokens.ts";
import type { RequestContext } from "../server/endpoint.ts";
import type { Sessions } from "../access/session.ts";

/** How often a stream sends an empty comment, so that proxies do not close an idle connection. */
const HEARTBEAT_MS = 15_000;

/** How long a client waits before it connects to a broken stream again. */
const RETRY_MS = 2_000;

/** Shortest time between two notices to a page that the log has grown. */
const LOOK_MS = 1_000;

export type EventStream = ReadableStream<Uint8Array<ArrayBuffer>>;

export interface EventStreamQuery {
  /** Position of the first event to send, inclusive. */
  readonly from: number;
  readonly types?: readonly EventType[];
  readonly stream?: string;
}

export interface EventStreamOptions {
  /** True if the stream's reader may still read; called before anything is sent. Default: always true. */
  readonly isKnown?: () => boolean;
  /** Called when the stream's reader leaves, or the stream ends. */
  readonly onGone?: () => void;
  readonly timer?: Timer;
  /** Limits the stream while requests wait. Default: the stream has no limit. */
  readonly pace?: StreamPace;
}

/**
 * Sends the log as Server-Sent Events (WHATWG HTML, section 9.2): the events from `from` on, then new ones. A message's
 * `id` is the event's position, for resuming; its data is the event as JSON, as in a JSON Lines export.
 */
export function openEventStream(
  store: { readonly subscribeBatches: LogStore["subscribeBatches"] },
  query: EventStreamQuery,
  /**
   * Ends the stream when aborted. It also ends if its reader leaves or, by the next heartbeat, if the reader's token
   * was revoked.
   */
  signal: AbortSignal,
  options: EventStreamOptions = {},
): EventStream {
  const { pace } = options;
  // Read at the reader's pace: a slow reader delays no other, keeps nothing in memory, and catches up from the log.
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
 * Sends the log's position as Server-Sent Events: first when it is `from` or later, then when it has grown, at most
 * once per {@link LOOK_MS}. A page that reloads on changes needs no more, and the cost does not grow with the load.
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
    // The stream may be open for days, and adds a listener each second.
    signal.removeEventListener("abort", wake);
  });
}

/**
 * Creates a stream of server-sent messages. The generator `messages` begins when the first message is read, and must
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
          // A reader does not cancel a stream that fails.
          await end();
          throw fault;
        } finally {
          beat.cancel();
        }
      },
      cancel: end,
    },
    // One batch in addition to the one that is being written.
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

/** Most events per second that all streams together send while requests wait. */
const EVENTS_PER_SECOND = 2_000;

/**
 * Number of events that a stream is assumed to send in a turn until it reports it: about what one read of the log
 * returns.
 */
const EXPECTED_EVENTS = 128;

/** How often a stream that waits for its turn checks whether requests still wait. */
const PACE_LOOK_MS = 1_000;

export type StreamPace = ReturnType<typeof createStreamPace>;

/**
 * Limits all event streams together while requests wait; readers catch up from the log later. `requests` returns how
 * many requests have arrived so far.
 */
export function createStreamPace(
  requests: () => number,
  clock: Clock,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
) {
  const intake = createIntakePriority(requests);
  /** Time at which the turns granted so far are over, in ms since the epoch. */
  let freeAt = 0;

  return {
    /**
     * Resolves when the stream may send its next events, or when `signal` aborts; turns follow the order of the calls.
     * The stream then calls the returned function with the number of events that it sent.
     */
    async turn(signal: AbortSignal): Promise<(events: number) => void> {
      let now = clock();
      if (!intake.isBusy(now)) {
        // No request waits any more, so earlier turns do not matter.
        freeAt = 0;
        return () => {};
      }
      // Each turn has its own time: if all waited for the same one, all would run at once.
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
 * Identifies the reader of an event stream. `name` is the same for a token and the sessions opened with it, for
 * counting streams. `isKnown` is true while the reader may read, since the stream may outlast token and session.
 */
export function identifyReader(
  { authentication, sessions }: { readonly authentication: Authentication; readonly sessions: Sessions },
  { request, metadata, readAddress }: RequestContext,
) {
  const authorization = request.headers.get("authorization");
  if (authorization === null) {
    // The request no longer exists when the session is checked again.
    const kept = { headers: new Headers({ cookie: request.headers.get("cookie") ?? "" }) };
    const signedIn = sessions.tokenOf(kept);
    const name = signedIn === undefined ? `address ${toNetwork(readAddress())}` : `caller ${signedIn.name}`;
    const isKnown = (): boolean => {
      // A session that was ended at another instance stops with the first message after this look.
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
