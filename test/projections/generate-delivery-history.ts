import {
  CHANNELS,
  CLICK_CHANNELS,
  isWebhook,
  type ChannelName,
  type ClickChannel,
  type Lane,
  type WebhookChannel,
} from "../../events/channel-and-lane-names.ts";
import type { EventType } from "../../events/event-types-and-codec.ts";
import { sourcesOf } from "../../events/position-ranges.ts";
import type { Dice, Step } from "./generate-history.ts";
import type { TestLog } from "../harness/in-process/number-and-fold-events.ts";

/** Requested dispatch of a generated history, with its state as the service knows it. */
export interface Requested {
  readonly channel: ChannelName;
  readonly lane: Lane;
  readonly position: number;
  readonly event_id: string;
  readonly source: number;
  attempts: number;
  /** True if the dispatch failed and waits for its next attempt. */
  waits: boolean;
  end: "dispatched" | "skipped" | "in_doubt" | "retried" | "dead" | undefined;
}

/** Possible data about the visitor in a generated click. */
const VISITORS = [{}, { visitor: 65 }, { visitor: 66 }, { visitor: 200 }, { anonymous: true as const }];

const CHOICES: readonly (readonly ClickChannel[])[] = [
  CLICK_CHANNELS,
  ["ads"],
  ["chat", "messaging"],
  [],
  ["messaging"],
];

/** Channels of a generated history; one webhook has a name. */
export const HISTORY_CHANNELS: readonly ChannelName[] = [...CHANNELS, "webhook-crm"];

/**
 * Sets of event types that webhooks may subscribe to. An event about a webhook is never carried to a webhook, even if
 * its type is in the set.
 */
const SUBSCRIPTIONS: readonly (readonly EventType[])[] = [
  ["LinkClicked"],
  ["DirectMessageSent", "RunFinished", "LogRestored"],
  ["CircuitOpened", "ChannelSuspended", "NotificationRequested"],
  ["DispatchSucceeded", "DispatchAbandoned", "DispatchRetryRequested"],
];

/** The webhooks in the form that events use. */
const WEBHOOKS = [{}, { channel: "webhook-crm" }] as const;

/**
 * Creates the part of a generated history that requests and settles dispatches on all channels, as a dispatcher with a
 * window over each lane (queue) would.
 */
export function createDeliveryPart(log: TestLog): {
  readonly steps: readonly Step[];
  readonly requested: () => Requested[];
} {
  const requested: Requested[] = [];
  const letters: Requested[] = [];

  const subscribed = new Map<WebhookChannel, readonly string[]>();
  let carriedTo = 0;

  /** Requests dispatches to the subscribed webhooks, for all events that were appended since the last call. */
  const carry = (): void => {
    for (const { position, id, type, data } of log.events.slice(carriedTo)) {
      carriedTo = position;
      const isAboutWebhook = "channel" in data && data.channel !== undefined && isWebhook(data.channel);
      for (const [channel, types] of subscribed) {
        if (!types.includes(type) || isAboutWebhook) continue;
        const about = { channel, lane: "events", position, event_id: id, source: position } as const;
        requested.push({ ...about, attempts: 0, waits: false, end: undefined });
      }
      if (type === "WebhookSubscribed") subscribed.set(data.channel ?? "webhook", data.types);
      if (type === "WebhookUnsubscribed") subscribed.delete(data.channel ?? "webhook");
    }
  };

  const request = (channels: readonly ChannelName[], lane: Lane, position: number, of?: Requested): void => {
    const event_id = of?.event_id ?? log.events[position - 1]?.id ?? "";
    const source = of?.source ?? position;
    for (const channel of channels) {
      requested.push({ channel, lane, position, event_id, source, attempts: 0, waits: false, end: undefined });
    }
  };

  const click: Step = (dice) => {
    const channels = dice.pick(CHOICES);
    const short_code = dice.pick(["a", "b", "c"]);
    const link = { event: "click", domain: "go.example", short_code, original_url: "https://example.com" };
    const probe = dice.once(9) ? { probe: dice.pick(["head", "prefetch"] as const) } : {};
    const visit = { ...link, ...dice.pick(VISITORS), bot: "probe" in probe || dice.once(3), ...probe };
    request(channels, "clicks", log.add("LinkClicked", { ...visit, channels: [...channels] }));
  };
  const attempt: Step = (dice) => {
    const pending = requested.filter(({ end }) => end === undefined);
    if (pending.length === 0) return click(dice);
    // Picks one of the first pending dispatches, because a dispatcher only has dispatches within its window in flight.
    // Sometimes it completes together with others, which then share its event.
    const first = dice.pick(pending.slice(0, 6));
    const near = pending.filter(({ channel, lane }) => channel === first.channel && lane === first.lane);
    const items = dice.once(3) ? [...new Set([first, ...near.slice(0, 3)])] : [first];
    const account = lowWatermark(requested, items, log.events.length + 1);
    const low_watermark = dice.once(4) ? Math.min(account, ...items.map(({ position }) => position)) : account;
    record(log, dice, { items, low_watermark, letters });
  };
  const repeat: Step = (dice) => {
    const ended = requested.filter(({ end }) => end !== undefined);
    if (ended.length === 0) return;
    const item = dice.pick(ended);
    // Records an outcome that the log already has, as another process or a start after a crash may do. That writer
    // knows of no settled dispatch, so its low watermark is 1.
    record(log, dice, { items: [{ ...item, end: undefined }], low_watermark: 1, letters: [] });
  };

  const claim: Step = (dice) => {
    const pending = requested.filter(({ end }) => end === undefined);
    if (pending.length === 0) return;
    const { channel, lane, position } = dice.pick(pending.slice(0, 6));
    log.add("DispatchClaimed", { channel, lane, token: dice.pick([1, 2]), sources: [position] });
  };

  const steps: Step[] = [
    click,
    click,
    click,
    attempt,
    attempt,
    attempt,
    attempt,
    repeat,
    claim,
    () => request(["chat"], "direct", log.add("NotificationRequested", { message: "m", service: "s", level: "info" })),
    () => request(["messaging"], "direct", log.add("MessageRequested", { text: "t" })),
    (dice) => {
      const channels = dice.pick<readonly ChannelName[]>([...CHOICES, HISTORY_CHANNELS, ["webhook", "webhook-crm"]]);
      request(channels, "direct", log.add("ChannelTestRequested", { channels: [...channels] }));
    },
    () => {
      const letter = letters.shift();
      if (letter === undefined) return;
      const { channel, event_id, source } = letter;
      request([channel], "direct", log.add("DispatchRetryRequested", { event_id, source, channel }), letter);
    },
    () => {
      const letter = letters.shift();
      if (letter === undefined) return;
      const { channel, event_id, source } = letter;
      log.add("DispatchDiscarded", { event_id, source, channel, why: "over" });
    },
    (dice) => {
      const doubts = requested.filter(({ end }) => end === "in_doubt");
      if (doubts.length === 0) return;
      const item = dice.pick(doubts);
      const { channel, event_id, source } = item;
      if (dice.once(3)) {
        const as = dice.pick(["arrived", "left"] as const);
        item.end = as === "arrived" ? "dispatched" : "retried";
        log.add("DispatchSettled", { event_id, source, channel, as, why: "seen" });
        return;
      }
      item.end = "retried";
      const retry = { event_id, source, channel, may_double: true, in_doubt: true } as const;
      request([channel], "direct", log.add("DispatchRetryRequested", retry), item);
    },
    (dice) => {
      const accepted = requested.filter(({ channel, end }) => channel === "messaging" && end === "dispatched");
      if (accepted.length === 0) return;
      const { channel, event_id, source } = dice.pick(accepted);
      log.add("DispatchLost", { event_id, source, channel, detail: "131047" });
    },
    (dice) => {
      const until = new Date(dice.once(2) ? 0 : 60_000).toISOString();
      log.add("CircuitOpened", { channel: dice.pick(HISTORY_CHANNELS), failures: 5, until });
    },
    (dice) => log.add("CircuitClosed", { channel: dice.pick(HISTORY_CHANNELS) }),
    (dice) => {
      const refused = { channel: dice.pick(HISTORY_CHANNELS), network: "n", detail: "gone" };
      log.add("ChannelSuspended", { ...refused, credential: dice.pick(["one", "other"]) });
    },
    (dice) =>
      log.add("ChannelResumed", { channel: dice.pick(HISTORY_CHANNELS), why: dice.pick(["by_hand", "delivered"]) }),
    (dice) => {
      const filter = dice.once(3) ? { filter: "data.position" } : {};
      const carried = { types: [...dice.pick(SUBSCRIPTIONS)], receiver: dice.pick(["a", "b"]), ...filter };
      log.add("WebhookSubscribed", { ...dice.pick(WEBHOOKS), ...carried });
    },
    (dice) => dice.once(3) && log.add("WebhookUnsubscribed", dice.pick(WEBHOOKS)),
  ];
  const carrying = steps.map((step): Step => (dice) => {
    carry();
    step(dice);
  });
  const all = (): Requested[] => {
    carry();
    return requested;
  };
  return { steps: carrying, requested: all };
}

interface Completed {
  /** Dispatches of one channel and lane (queue) that ended together. */
  readonly items: readonly Requested[];
  readonly low_watermark: number;
  /** List to which the dispatches that are given up are added. */
  readonly letters: Requested[];
}

function record(log: TestLog, dice: Dice, { items, low_watermark, letters }: Completed): void {
  const [{ channel, lane } = { channel: "ads", lane: "clicks" } as const] = items;
  const isBatch = dice.once(2);
  const byAttempt = Map.groupBy(items, (item) => (isBatch ? ++item.attempts : `${item.position}:${++item.attempts}`));
  const about = [...byAttempt.values()].map((same) => {
    return { sources: sourcesOf(same.map(({ position }) => position)), attempt: same[0]?.attempts ?? 0 };
  });
  const asked = { mode: isBatch ? ("batch" as const) : ("single" as const) };
  const common = { channel, lane, low_watermark };
  for (const item of items) item.waits = false;
  switch (dice.pick(["dispatched", "dispatched", "failed", "skipped", "doubt", "dead"] as const)) {
    case "dispatched": {
      for (const item of items) item.end = "dispatched";
      const requests = about.map((one) => ({ ...one, ...asked, status: 200, latency_ms: 12 }));
      return void log.add("DispatchSucceeded", { ...common, requests });
    }
    case "failed": {
      for (const item of items) item.waits = true;
      const failure = { ...asked, detail: "503", retry_at: "2026-11-20T11:00:00.000Z" };
      return void log.add("DispatchFailed", { ...common, requests: about.map((one) => ({ ...one, ...failure })) });
    }
    case "skipped": {
      for (const item of items) item.end = "skipped";
      const requests = about.map((one) => ({ ...one, reason: "too_old" as const }));
      return void log.add("DispatchSkipped", { ...common, requests });
    }
    case "doubt": {
      for (const item of items) item.end = "in_doubt";
      const requests = about.map((one) => ({ ...one, ...asked, detail: "time-out" }));
      return void log.add("DispatchInDoubt", { ...common, requests });
    }
    case "dead": {
      for (const item of items) item.end = "dead";
      letters.push(...items);
      const requests = about.map((one) => ({ ...one, ...asked, detail: "400", refused: true }));
      return void log.add("DispatchAbandoned", { ...common, requests });
    }
  }
}

/**
 * Returns the low watermark for an outcome event of `items`: position of the lane's first other dispatch that is
 * neither settled nor waits for a retry; `end` if there is none.
 */
function lowWatermark(requested: readonly Requested[], items: readonly Requested[], end: number): number {
  const [item] = items;
  const others = requested.filter(
    (other) =>
      !items.includes(other) && other.channel === item?.channel && other.lane === item.lane && other.end === undefined,
  );
  return others.find(({ waits }) => !waits)?.position ?? end;
}
