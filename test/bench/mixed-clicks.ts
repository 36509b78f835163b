import type { ChannelName } from "../../events/channel.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Emit, Part, Random } from "./mixed-log.ts";

/** Links posted; more than the clicks projection tells apart would be unusual. */
const LINKS = 4_000;
const BURST_CLICKS = 12;
/** The dispatcher has several attempts in flight, and they land in another order. */
const IN_FLIGHT = 4;
const RETRY_AT = "2026-11-20T00:05:00.000Z";

/** What one channel owes for clicks, as its dispatcher would account for it. */
interface Lane {
  readonly channel: ChannelName;
  /** Owed positions without an outcome, in the order of the log. */
  readonly waiting: number[];
  readonly retries: number[];
}

/** Bursts of clicks on a link, and the outcomes of their dispatches. */
export function clicksPart(): Part {
  const lanes = (["ads", "chat", "messaging"] as const).map((channel): Lane => ({ channel, waiting: [], retries: [] }));
  return (emit, random) => {
    const click = clickOf(random);
    const { domain, short_code } = click.data;
    const first = emit(STREAMS.link(domain, short_code), Array<NewEvent>(BURST_CLICKS).fill(click));
    for (const lane of lanes) {
      for (let index = 0; index < BURST_CLICKS; index++) lane.waiting.push(first + index);
      settleMost(lane, first + BURST_CLICKS, emit, random);
    }
  };
}

function clickOf(random: Random): Extract<NewEvent, { type: "LinkClicked" }> {
  // Squared, so that a few links get most of the clicks.
  const number = Math.floor(random() ** 2 * LINKS);
  return {
    type: "LinkClicked",
    data: {
      event: "click",
      domain: "go.example",
      short_code: `post-${number}`,
      original_url: `https://shop.example/products/${number}?utm_source=x&utm_medium=social&fbclid=IwAR0abcdefghij`,
      ip: "203.0.113.7",
      user_agent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko)",
      bot: random() < 0.1,
      channels: ["ads", "chat", "messaging"],
    },
  };
}

function settleMost(lane: Lane, readFrom: number, emit: Emit, random: Random): void {
  const newEvents: NewEvent[] = [];
  while (lane.waiting.length > IN_FLIGHT) {
    const [owed = 0] = lane.waiting.splice(Math.floor(random() * IN_FLIGHT), 1);
    newEvents.push(outcome(lane, owed, lane.waiting[0] ?? readFrom, random));
  }
  const [retried] = random() < 0.2 ? lane.retries.splice(0, 1) : [];
  if (retried !== undefined) newEvents.push(retry(lane, retried, lane.waiting[0] ?? readFrom, random));
  emit(STREAMS.delivery(lane.channel), newEvents);
}

/** The first attempt: nearly always delivered. */
function outcome(lane: Lane, owed: number, low_watermark: number, random: Random): NewEvent {
  const data = { ...dispatchOf(lane, owed, 1), low_watermark };
  const chance = random();
  if (chance < 0.01) {
    lane.retries.push(owed);
    const failure = { status: 503, detail: "HTTP 503", retry_at: RETRY_AT };
    return { type: "DispatchFailed", data: { ...data, ...failure } };
  }
  if (chance < 0.012) return { type: "DispatchInDoubt", data: { ...data, detail: "no answer within 5 s" } };
  if (chance < 0.014) return { type: "DispatchSkipped", data: { ...data, reason: "no_user_agent" } };
  const latency_ms = 20 + Math.floor(random() * 200);
  return { type: "DispatchSucceeded", data: { ...data, status: 200, latency_ms } };
}

/** The second attempt: delivered, or given up. */
function retry(lane: Lane, owed: number, low_watermark: number, random: Random): NewEvent {
  const data = { ...dispatchOf(lane, owed, 2), low_watermark };
  if (random() < 0.1) {
    return { type: "DispatchAbandoned", data: { ...data, status: 400, detail: "HTTP 400", refused: true } };
  }
  return { type: "DispatchSucceeded", data: { ...data, status: 200, latency_ms: 90 } };
}

function dispatchOf({ channel }: Lane, owed: number, attempt: number) {
  const event_id = `019a9f00-0000-7000-8000-${String(owed).padStart(12, "0")}`;
  return { event_id, owed, channel, lane: "clicks", attempt } as const;
}
