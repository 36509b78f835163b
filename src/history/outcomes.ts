import type { EventType, Recorded } from "../../events/catalog.ts";
import type { ChannelName } from "../../events/channel.ts";
import { isFinal, isOutcome, narrowedTo } from "../../events/dispatches.ts";
import { STREAMS } from "../log/event-log.ts";
import { isDecision, readRequestedChannels } from "./dispatches.ts";
import type { Reading } from "./history.ts";

/** The outcomes of an event's dispatches to one channel. */
export interface ChannelOutcome {
  readonly channel: ChannelName;
  /** Attempts, narrowed to this dispatch, and what was decided by hand; in the order of the log. */
  readonly events: readonly Recorded[];
  /** False: more may have come of it than was looked for. */
  readonly isWhole: boolean;
}

/** Outcomes of a channel read at the most behind a request: it waits its turn behind what was requested before it. */
const OUTCOMES_READ_MAX = 1_000;

/** Decisions of an operator read at the most behind a request. */
const DECISIONS_READ_MAX = 1_000;

const DECISIONS: readonly EventType[] = ["DispatchRetryRequested", "DispatchDiscarded"];

/** The outcomes of this event's dispatches, by channel; empty for an event that requests none. */
export async function readOutcomes(reading: Reading, event: Recorded): Promise<readonly ChannelOutcome[]> {
  const channels = (await readRequestedChannels(reading))(event);
  if (channels.length === 0) return [];
  const decisions = await readDecisions(reading, event);
  return Promise.all(channels.map((channel) => outcomeOn(reading, event, channel, decisions)));
}

async function readDecisions({ store, to }: Reading, event: Recorded) {
  const source = isDecision(event) ? event.data.source : event.position;
  const from = event.position + 1;
  const read = await Array.fromAsync(store.read({ types: DECISIONS, from, to, limit: DECISIONS_READ_MAX }));
  return read.filter(isDecision).filter(({ data }) => data.source === source);
}

async function outcomeOn(
  reading: Reading,
  { position }: Recorded,
  channel: ChannelName,
  decisions: Awaited<ReturnType<typeof readDecisions>>,
): Promise<ChannelOutcome> {
  const decided = decisions.filter(({ data }) => data.channel === channel);
  const retries = decided.filter(({ type }) => type === "DispatchRetryRequested");
  const requested = [position, ...retries.map((retry) => retry.position)];
  const attempts = await Promise.all(requested.map((at) => readAttempts(reading, channel, at)));
  const events = [...decided, ...attempts.flatMap(({ events: some }) => some)];
  return {
    channel,
    events: events.sort((one, other) => one.position - other.position),
    isWhole: attempts.every(({ isWhole }) => isWhole),
  };
}

/** The attempts at what was requested at a position, up to the final one. */
async function readAttempts(
  { store, to }: Reading,
  channel: ChannelName,
  requested: number,
): Promise<Omit<ChannelOutcome, "channel">> {
  const events: Recorded[] = [];
  const wanted = new Set([requested]);
  let read = 0;
  for await (const event of store.read({
    stream: STREAMS.delivery(channel),
    from: requested + 1,
    to,
    limit: OUTCOMES_READ_MAX,
  })) {
    read++;
    const own = isOutcome(event) ? narrowedTo(event, wanted) : undefined;
    if (own === undefined) continue;
    events.push(own);
    if (isFinal(own.type)) return { events, isWhole: true };
  }
  return { events, isWhole: read < OUTCOMES_READ_MAX };
}
