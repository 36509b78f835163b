import type { ClickChannel } from "../../events/channel-and-lane-names.ts";
import type { OutcomeType } from "../../events/dispatches-requested-by-events.ts";
import { VISITOR_RANKS, VISITOR_REGISTERS } from "../../projections/estimate-visitors.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { Emit, Part, Random } from "./write-mixed-log.ts";

/**
 * Number of different links in the generated log. It is below the number of links for which the clicks projection keeps
 * separate counts, because a log with more links would be unusual.
 */
const LINKS = 4_000;
const BURST_CLICKS = 12;
/** Share of bursts that contain a click on a recipient's own link. The next constant is the number of such links. */
const PERSONAL_SHARE = 0.1;
const PERSONAL_LINKS = 5_000;
/** Number of attempts that the simulated dispatcher has in flight. They complete in another order than they begin. */
const IN_FLIGHT = 4;
const RETRY_AT = "2026-11-20T00:05:00.000Z";

/** Pending clicks of one channel, as the simulated dispatcher tracks them. */
interface Lane {
  readonly channel: ClickChannel;
  /** Positions of clicks without an outcome, in the order of the log. */
  readonly waiting: number[];
  readonly retries: number[];
}

/** Writes bursts of clicks on a link and the outcomes of their dispatches. */
export function clicksPart(): Part {
  const lanes = (["ads", "chat", "messaging"] as const).map((channel): Lane => ({ channel, waiting: [], retries: [] }));
  return (emit, random) => {
    const click = clickOf(random);
    const { domain, short_code } = click.data;
    const first = emit(STREAMS.link(domain, short_code), Array<NewEvent>(BURST_CLICKS).fill(click));
    const code = `own-${Math.floor(random() * PERSONAL_LINKS)}`;
    if (random() < PERSONAL_SHARE)
      emit(STREAMS.link(domain, short_code), [{ type: "PersonalLinkClicked", data: { code } }]);
    for (const lane of lanes) {
      for (let index = 0; index < BURST_CLICKS; index++) lane.waiting.push(first + index);
      settleMost(lane, first + BURST_CLICKS, emit, random);
    }
  };
}

function clickOf(random: Random): Extract<NewEvent, { type: "LinkClicked" }> {
  // The random number is squared, so that a few links get most of the clicks.
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
      visitor: Math.floor(random() * VISITOR_REGISTERS) * VISITOR_RANKS + 1 - Math.floor(Math.log2(random())),
      channels: ["ads", "chat", "messaging"],
    },
  };
}

function settleMost(lane: Lane, readFrom: number, emit: Emit, random: Random): void {
  const outcomes: Outcome[] = [];
  while (lane.waiting.length > IN_FLIGHT) {
    const [source = 0] = lane.waiting.splice(Math.floor(random() * IN_FLIGHT), 1);
    outcomes.push(outcomeOf(lane, source, random));
  }
  const [retried] = random() < 0.2 ? lane.retries.splice(0, 1) : [];
  if (retried !== undefined) outcomes.push(retryOf(retried, random));
  emit(STREAMS.delivery(lane.channel), eventsOf(lane, outcomes, lane.waiting[0] ?? readFrom));
}

interface Outcome {
  readonly type: OutcomeType;
  readonly request: object;
}

/** Creates one event for each kind of outcome of attempts that completed together, as the recorder writes them. */
function eventsOf({ channel }: Lane, outcomes: readonly Outcome[], low_watermark: number): NewEvent[] {
  return [...Map.groupBy(outcomes, ({ type }) => type)].map(([type, ofType]) => {
    const requests = ofType.map(({ request }) => request);
    return { type, data: { channel, lane: "clicks", low_watermark, requests } } as unknown as NewEvent;
  });
}

/** Returns a random outcome of a dispatch's first attempt, which is nearly always a delivery. */
function outcomeOf(lane: Lane, source: number, random: Random): Outcome {
  const base = { sources: [source], attempt: 1 };
  const asked = { ...base, mode: "single" };
  const chance = random();
  if (chance < 0.01) {
    lane.retries.push(source);
    const failure = { status: 503, latency_ms: 90, detail: "HTTP 503", retry_at: RETRY_AT };
    return { type: "DispatchFailed", request: { ...asked, ...failure } };
  }
  if (chance < 0.012) return { type: "DispatchInDoubt", request: { ...asked, detail: "no answer within 5 s" } };
  if (chance < 0.014) return { type: "DispatchSkipped", request: { ...base, reason: "no_user_agent" } };
  const latency_ms = 20 + Math.floor(random() * 200);
  return { type: "DispatchSucceeded", request: { ...asked, status: 200, latency_ms } };
}

/** Returns a random outcome of a dispatch's second attempt: delivered or abandoned. */
function retryOf(source: number, random: Random): Outcome {
  const asked = { sources: [source], attempt: 2, mode: "single" };
  if (random() < 0.1) {
    return { type: "DispatchAbandoned", request: { ...asked, status: 400, detail: "HTTP 400", refused: true } };
  }
  return { type: "DispatchSucceeded", request: { ...asked, status: 200, latency_ms: 90 } };
}
