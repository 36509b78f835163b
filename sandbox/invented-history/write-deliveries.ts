import { createLanes, type PendingClick, type StoryChannel, type StoryLanes } from "./queue-clicks-for-channels.ts";
import { OPERATOR, PRODUCT, STORY_STREAMS, type StoryLog } from "./story-log-interface.ts";
import type { Timeline } from "./timeline.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

const SLACK_REFUSAL = { status: 429, detail: "Slack answered 429 rate_limited" };
const SLACK_REJECTION = { status: 400, detail: "Slack answered 400 invalid_blocks", latency_ms: 95 };
const NO_ANSWER = { detail: "no answer in time" };

/** Maximum number of requests that one outcome event of the product has. */
const REQUESTS_MAX = 64;
/** Number of attempts that the product makes at a dispatch before it gives up. */
const ATTEMPTS = 8;
const DIGEST_CLICKS = 40;

/** Minutes from one attempt to the next, for the clicks that Slack refuses for good. */
const WAITS_MIN = [0.1, 0.3, 1, 3, 9, 21, 32];

export type StoryDeliveries = ReturnType<typeof createDeliveries>;

/** Creates the part of the demo's invented history that delivers clicks to networks, and lets some deliveries fail. */
export function createDeliveries(log: StoryLog, timeline: Timeline, random: () => number) {
  const lanes = createLanes(log);
  const held = new Set<StoryChannel>();
  const rejected = new Set<number>();
  let doubtful = 0;

  const succeed: Succeed = (latencyMs, mode) => {
    return { mode, status: 200, latency_ms: Math.round(latencyMs * (0.7 + random())) };
  };

  const deliver = async (clicks: readonly PendingClick[]): Promise<void> => {
    const { true: asked = [], false: skipped = [] } = Object.groupBy(clicks, ({ hasAgent }) => `${hasAgent}`);
    const [mode, batch] = clicks.length > 1 ? ["digest", "batch"] : ["single", "single"];
    const work: Promise<void>[] = [];
    if (asked.length > 0) work.push(lanes.end("ads", "DispatchSucceeded", [asked], succeed(120, batch)));
    if (skipped.length > 0) work.push(lanes.end("ads", "DispatchSkipped", [skipped], { reason: "no_user_agent" }));
    if (clicks.some(({ position }) => rejected.has(position)))
      work.push(lanes.end("chat", "DispatchAbandoned", [clicks], { mode, ...SLACK_REJECTION, refused: true }));
    else if (!held.has("chat")) work.push(lanes.end("chat", "DispatchSucceeded", [clicks], succeed(180, mode)));
    if (!held.has("messaging")) {
      const isDoubtful = doubtful > 0 && clicks.length === 1;
      if (isDoubtful) doubtful--;
      const outcome = isDoubtful ? { mode: "single", ...NO_ANSWER } : succeed(90, mode);
      work.push(lanes.end("messaging", isDoubtful ? "DispatchInDoubt" : "DispatchSucceeded", [clicks], outcome));
    }
    await Promise.all(work);
  };

  return {
    /** Lets the channels receive clicks that were appended at `at`, two seconds later. */
    take(clicks: readonly PendingClick[], at: number): void {
      lanes.add(clicks);
      timeline.at(timeline.after(at, 2 * SECOND_MS), () => deliver(clicks));
    },
    /** Leaves the outcome of the next clicks in doubt for messaging. */
    doubt: (count: number): void => void (doubtful += count),
    /** Lets the chat's network refuse these clicks for good, as soon as it is asked. */
    reject(clicks: readonly PendingClick[]): void {
      for (const { position } of clicks) rejected.add(position);
    },
    /** Lets the channel's clicks wait from now on. */
    hold: (channel: StoryChannel): void => void held.add(channel),
    ...createSlackTrouble(lanes, timeline, succeed, () => held.delete("chat")),
    ...createDecisions(log, lanes, succeed),
  };
}

/** Returns the members of a request that the network accepted. */
type Succeed = (latencyMs: number, mode: string) => object;

/** Creates the part of the story in which Slack takes no messages for two hours. `resume`: called at their end. */
function createSlackTrouble(lanes: StoryLanes, timeline: Timeline, succeed: Succeed, resume: () => void) {
  let digests = 0;
  const digestId = (): string => `digest-${String(++digests).padStart(6, "0")}`;

  /** Records that Slack refused clicks at every attempt from `begin` on, so that they become dead letters. */
  const giveUp = async (clicks: readonly PendingClick[], begin: number): Promise<void> => {
    let at = begin;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const asked = { attempt, mode: "digest", digest: digestId(), latency_ms: 210, ...SLACK_REFUSAL };
      const next = timeline.after(at, (WAITS_MIN[attempt - 1] ?? 0) * MINUTE_MS);
      const isLast = attempt === ATTEMPTS;
      const more = isLast ? { refused: false } : { retry_at: new Date(next).toISOString() };
      const act = () =>
        lanes.end("chat", isLast ? "DispatchAbandoned" : "DispatchFailed", [clicks], { ...asked, ...more });
      // The first attempt is recorded at once and not scheduled. The clicks then do not wait for delivery any more, so
      // nothing else in the demo's invented history delivers them.
      if (attempt === 1) await act();
      else timeline.at(at, act);
      at = next;
    }
  };

  return {
    /** Makes `count` waiting clicks of the chat dead letters: up to `people` clicks by people, the others by bots. */
    async refuse(count: number, people: number, at: number): Promise<void> {
      const waiting = lanes.waiting("chat");
      const byPeople = waiting.filter(({ bot }) => !bot).slice(0, people);
      const byBots = waiting.filter(({ bot }) => bot).slice(0, count - byPeople.length);
      await giveUp(
        [...byBots, ...byPeople].sort((a, b) => a.position - b.position),
        at,
      );
    },
    openCircuit(until: number) {
      const data = { channel: "chat", failures: 5, until: new Date(until).toISOString() };
      return lanes.append("chat", [{ type: "CircuitOpened", data }]);
    },
    /** Lets the chat receive the clicks that waited, in digests. */
    async release(): Promise<void> {
      resume();
      await lanes.append("chat", [{ type: "CircuitClosed", data: { channel: "chat" } }]);
      const waiting = lanes.waiting("chat");
      const groups = Array.from({ length: Math.ceil(waiting.length / DIGEST_CLICKS) }, (_, nth) =>
        waiting.slice(nth * DIGEST_CLICKS, (nth + 1) * DIGEST_CLICKS),
      );
      for (let from = 0; from < groups.length; from += REQUESTS_MAX) {
        const more = { ...succeed(240, "digest"), digest: digestId() };
        await lanes.end("chat", "DispatchSucceeded", groups.slice(from, from + REQUESTS_MAX), more);
      }
    },
  };
}

/** Creates the part of the story in which an operator decides about dead letters of the chat. */
function createDecisions(log: StoryLog, lanes: StoryLanes, succeed: Succeed) {
  /** Records that the chat received the requests from this position on, after an operator asked for a retry. */
  const arrive = async (first: number, count: number): Promise<void> => {
    const requests = Array.from({ length: count }, (_, nth) => {
      return { sources: [first + nth], attempt: 1, ...succeed(150, "single") };
    });
    const data = { channel: "chat", lane: "direct", low_watermark: first + count, requests };
    await lanes.append("chat", [{ type: "DispatchSucceeded", data }]);
  };

  return {
    async discard(clicks: readonly PendingClick[], why: string): Promise<void> {
      const discarded = clicks.map(({ position, id }) => {
        return { type: "DispatchDiscarded", data: { event_id: id, source: position, channel: "chat", why } };
      });
      await log.append(STORY_STREAMS.requests, discarded, OPERATOR);
    },
    /** Writes to the story that the operator retries these dead letters, and that the chat receives them. */
    async retry(clicks: readonly PendingClick[]): Promise<void> {
      const retries = clicks.map(({ position, id }) => {
        return { type: "DispatchRetryRequested", data: { event_id: id, source: position, channel: "chat" } };
      });
      const { first } = await log.append(STORY_STREAMS.requests, retries, OPERATOR);
      await arrive(first, retries.length);
    },
    /** Lets the service send an announcement to the chat. */
    async announce(message: string): Promise<void> {
      const request = { type: "NotificationRequested", data: { message, service: PRODUCT, level: "critical" } };
      const { first } = await log.append(STORY_STREAMS.requests, [request], PRODUCT);
      await arrive(first, 1);
    },
  };
}
