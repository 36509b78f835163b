import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore } from "eventstore-lite";
import { atLeast, atMost, compare, interleave, roundsOf, type Bench } from "eventstore-lite/bench";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { deliveryTimeOf, describeTimes, timeOfEach, type DeliveryTime } from "./measure-delivery-processor-time.ts";
import { startService } from "./start-service-process.ts";

const EVENTS = 20_000;
const EVENTS_QUICK = 2_000;

/**
 * Short codes of the links that are clicked. The slow receiver and the unreachable one each subscribe to only one of
 * these links.
 */
const CODES = Array.from("abcdefghij");

/** Delay of the slow receiver, which resembles a distant one that stores what it receives. */
const SLOW_MS = 500;

const SECRET = `whsec_${Buffer.alloc(32, "bench").toString("base64")}`;

interface Delivered {
  readonly perSecond: number;
  /** Processor time of the service per event. */
  readonly time: DeliveryTime;
}

/**
 * Measures the events a second of one webhook next to a slow one and an unreachable one. Compares them with the same
 * webhook alone.
 */
export const webhooks: Bench = async (options) => {
  const events = options.quick ? EVENTS_QUICK : EVENTS;
  const { beside, alone } = await interleave(roundsOf(options), {
    alone: () => deliver(options.directory, events, false),
    beside: () => deliver(options.directory, events, true),
  });
  const timesOf = (all: readonly Delivered[]): string => describeTimes(all.map(({ time }) => time));
  options.note(`processor time of an event in µs: ${timesOf(beside)}; of the limit: ${timesOf(alone)}`);
  const speeds = (all: readonly Delivered[]) => all.map(({ perSecond }) => perSecond);
  const times = (all: readonly Delivered[]) =>
    all.map(({ time }) => time.main + time.client + time.writer + time.runtime);
  const what = "one beside one that is slow and one that is down; limit: the same one alone";
  return [
    compare(`webhooks, events of ${what}`, "/s", speeds(beside), speeds(alone), atLeast(0.9)),
    compare(`webhooks, processor time of an event of ${what}`, "µs", times(beside), times(alone), atMost(1.1)),
  ];
};

/** Measures one round of deliveries, from the first to the last event that arrives at the fast receiver. */
async function deliver(directory: string, events: number, hasOthers: boolean): Promise<Delivered> {
  const folder = mkdtempSync(join(directory, "webhooks-"));
  const file = join(folder, "log.sqlite");
  const arrived = Promise.withResolvers<number>();
  let [count, since] = [0, 0];
  const receive = (): Response => {
    if (count++ === 0) since = performance.now();
    if (count === events) arrived.resolve((performance.now() - since) / 1_000);
    return new Response();
  };
  const fast = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: receive });
  const slow = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Bun.sleep(SLOW_MS).then(() => new Response()),
  });
  try {
    const settings = {
      ...webhook("WEBHOOK", fast.url.href),
      ...(hasOthers ? webhook("WEBHOOK_SLOW", slow.url.href, "data.data.short_code == 'a'") : {}),
      ...(hasOthers ? webhook("WEBHOOK_DOWN", "http://127.0.0.1:9/", "data.data.short_code == 'b'") : {}),
    };
    // A webhook receives only events that are appended after its first start, so the service is started once before the
    // append.
    await (await startService(file, settings))[Symbol.asyncDispose]();
    await append(file, events);
    await using service = await startService(file, settings);
    const before = deliveryTimeOf(service.pid);
    const seconds = await arrived.promise;
    return { perSecond: events / seconds, time: timeOfEach(before, deliveryTimeOf(service.pid), events) };
  } finally {
    await Promise.all([fast, slow].map((server) => server.stop(true)));
    rmSync(folder, { recursive: true, force: true });
  }
}

function webhook(prefix: string, url: string, filter = ""): Record<string, string> {
  return {
    [`${prefix}_URL`]: url,
    [`${prefix}_SECRET`]: SECRET,
    [`${prefix}_EVENTS`]: "LinkClicked",
    [`${prefix}_FILTER`]: filter,
  };
}

async function append(file: string, count: number): Promise<void> {
  await using store = await openSqliteStore<Event>({ file, codec });
  const link = {
    event: "click",
    domain: "go.example",
    original_url: "https://shop.example/",
    bot: false,
    channels: [],
  };
  const clicks = Array.from({ length: count }, (_, at) =>
    makeEvent("LinkClicked", makeId(), { ...link, short_code: CODES[at % CODES.length] ?? "" }, { caller: "bench" }),
  );
  for (let at = 0; at < count; at += 1_000) await store.append(STREAMS.requests, clicks.slice(at, at + 1_000));
}
