import type { EventStore } from "eventstore-lite";
import type { Event, EventType, Recorded } from "../../events/catalog.ts";
import { systemTimer, type Timer } from "../platform/timer.ts";

/** A comment so often keeps proxies from closing a stream on which nothing happens. */
export const HEARTBEAT_MS = 15_000;

/** How long a client waits before it connects again. */
const RETRY_MS = 2_000;

export interface EventStreamQuery {
  /** First position, inclusive. */
  readonly from: number;
  readonly types?: readonly EventType[];
  readonly stream?: string;
}

export interface EventStreamOptions {
  /** Called when the reader goes. */
  readonly onGone?: () => void;
  readonly timer?: Timer;
}

/**
 * The log as Server-Sent Events (WHATWG HTML, section 9.2): what is there from `from` on, then what comes. Each event is
 * one message: its `id` is the position, by which a client resumes, and its data the event as JSON, as in a JSON Lines
 * export. Read at the reader's pace: whoever is slow holds up nobody, keeps nothing in memory, and catches up from the
 * log. Ends when the reader goes, or on `signal`.
 */
export function openEventStream(
  store: Pick<EventStore<Event>, "subscribeBatches">,
  query: EventStreamQuery,
  signal: AbortSignal,
  { onGone, timer = systemTimer }: EventStreamOptions = {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const gone = new AbortController();
  const followed = store.subscribeBatches({ ...query, signal: AbortSignal.any([signal, gone.signal]) });
  const batches = followed[Symbol.asyncIterator]();
  let next: Promise<string | undefined> | undefined;
  const encoder = new TextEncoder();
  return new ReadableStream(
    {
      start: (controller) => controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\n`)),
      async pull(controller) {
        next ??= batches.next().then(({ done, value }) => (done === true ? undefined : value.map(messageOf).join("")));
        const beat = heartbeat(timer);
        try {
          const text = await Promise.race([next, beat.text]);
          if (text === undefined) return controller.close();
          if (text !== BEAT) next = undefined;
          controller.enqueue(encoder.encode(text));
        } finally {
          beat.cancel();
        }
      },
      async cancel() {
        gone.abort();
        onGone?.();
        await batches.return?.();
      },
    },
    // One batch beside the one that is being written.
    { highWaterMark: 1 },
  );
}

const BEAT = ": heartbeat\n\n";

function heartbeat(timer: Timer): { readonly text: Promise<string>; readonly cancel: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>();
  return { text: promise, cancel: timer(() => resolve(BEAT), HEARTBEAT_MS) };
}

function messageOf({ position, id, stream, version, type, time, data, meta, hash }: Recorded): string {
  return `id: ${position}\ndata: ${JSON.stringify({ position, id, stream, version, type, time, data, meta, hash })}\n\n`;
}
