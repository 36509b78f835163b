import type { EventType, Recorded, LogStore } from "../../../events/catalog.ts";
import { hideCodes } from "../../networks/hide-codes.ts";
import { hasScope } from "../../config/tokens.ts";
import { createIntakePriority } from "../../delivery/rate-limiter.ts";
import { type Clock, systemTimer, type Timer } from "../../platform/clock.ts";
import { toNetwork } from "../../platform/ip-address.ts";
import { bearerToken, type Authentication } from "../access/bearer-tokens.ts";
import type { RequestContext } from "../server/endpoint.ts";
import type { Sessions } from "../access/session.ts";

/** How often a comment is sent, so that proxies do not close an idle stream. */
const HEARTBEAT_MS = 15_000;

/** How long a client waits before it connects again. */
const RETRY_MS = 2_000;

/** How often a page is notified, at most, that the log has grown. */
const LOOK_MS = 1_000;

export type EventStream = ReadableStream<Uint8Array<ArrayBuffer>>;

export interface EventStreamQuery {
  /** First position, inclusive. */
  readonly from: number;
  readonly types?: readonly EventType[];
  readonly stream?: string;
}

export interface EventStreamOptions {
  /** True if the reader may still read; called before anything is sent. Default: always true. */
  readonly isKnown?: () => boolean;
  /** Called when the reader leaves, or the stream ends. */
  readonly onGone?: () => void;
  readonly timer?: Timer;
  /** Default: the stream does not give way to requests. */
  readonly pace?: StreamPace;
}

/**
 * Sends the log as Server-Sent Events (WHATWG HTML, section 9.2): the events from `from` on, then new ones. A message's
 * `id` is the event's position, for resuming; its data is the event as JSON, as in a JSON Lines export.
 */
export function openEventStream(
  store: Pick<LogStore, "subscribeBatches">,
  query: EventStreamQuery,
  /** Ends the stream, as does a reader that leaves or, by the next heartbeat, a revoked token. */
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

/** `messages` begins when the first one is wanted, and must end on the signal that it gets. */
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

/** Events per second that all streams together may send while requests wait for each other. */
const EVENTS_PER_SECOND = 2_000;

/** Events that a turn is expected to send until the number is known: about what one read of the log returns. */
const EXPECTED_EVENTS = 128;

/** How often a waiting stream checks whether requests still wait. */
const PACE_LOOK_MS = 1_000;

export type StreamPace = ReturnType<typeof createStreamPace>;

/**
 * Makes event streams give way to requests; readers catch up from the log later. `requests` returns how many have
 * arrived.
 */
export function createStreamPace(
  requests: () => number,
  clock: Clock,
  sleep: (ms: number, signal: AbortSignal) => Promise<void>,
) {
  const intake = createIntakePriority(requests);
  /** When the time of all granted turns is over, in ms since the epoch. */
  let freeAt = 0;

  return {
    /**
     * Resolves when the next events may be sent, or `signal` aborts; streams get turns in the order in which they ask.
     * The stream with the turn calls the result with the number of events that it sent.
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
 * Identifies a stream's reader. Streams are counted by `name`, one for a token and for the sessions opened with it.
 * `isKnown` is true while the reader may read: the stream may outlast token and session.
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
