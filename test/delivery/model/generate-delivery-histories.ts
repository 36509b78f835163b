import * as fc from "fast-check";
import type { EventType } from "../../../events/event-types-and-codec.ts";
import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import type { Kind } from "./network-answers.ts";

export type Step =
  | { readonly do: "click" | "notify"; readonly count: number }
  | { readonly do: "pass" | "leap"; readonly ms: number }
  | { readonly do: "kill" | "stop"; readonly otherCredential: boolean }
  | { readonly do: "resume" | "retry" }
  /** Step of a history: the webhook subscribes to these types. */
  | { readonly do: "subscribe"; readonly types: readonly EventType[] }
  /** Step of a history: the disk becomes full, so that outcomes cannot be recorded, or has room again. */
  | { readonly do: "fill" | "free" }
  /** Step of a history: an event is appended after which the dispatcher reads its lanes (queues) from the log again. */
  | { readonly do: "reopen"; readonly by: "PersonForgotten" | "PersonalDataExpired" | "ProjectionRebuilt" };

export interface History {
  readonly seed: number;
  /**
   * Configured channels of the history, with the properties of their networks. Each click goes to all that accept
   * clicks.
   */
  readonly kinds: ReadonlyMap<ChannelName, Kind>;
  readonly digestAfterMs: number | undefined;
  /**
   * Percentage of appends of an outcome that fail: the log refuses the event, or it accepts the event and reports a
   * failure nevertheless.
   */
  readonly faults: number;
  readonly steps: readonly Step[];
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** Sets of event types that the webhook may subscribe to; it starts with the first. */
export const SUBSCRIPTIONS: readonly [readonly EventType[], ...(readonly EventType[])[]] = [
  ["LinkClicked", "NotificationRequested", "MessageRequested"],
  ["LinkClicked"],
  ["NotificationRequested"],
];

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("click" as const), count: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("notify" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: MINUTE_MS }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass" as const), ms: fc.integer({ min: 0, max: HOUR_MS }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("leap" as const),
      ms: fc.integer({ min: -10 * MINUTE_MS, max: 10 * MINUTE_MS }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("kill" as const, "stop" as const), otherCredential: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("resume" as const, "retry" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("subscribe" as const), types: fc.constantFrom(...SUBSCRIPTIONS) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom("fill" as const, "fill" as const, "free" as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("reopen" as const),
      by: fc.constantFrom("PersonForgotten" as const, "PersonalDataExpired" as const, "ProjectionRebuilt" as const),
    }),
  },
);

/**
 * Simulated network that recognises no repeats, like Slack and Telegram. The two after it are like LINE, which does not
 * recognise a click that a digest repeats, and like Meta, which accepts batches.
 */
const DOUBLING: Kind = { recognisesMs: undefined, batch: undefined };
const KNOWING: Kind = { recognisesMs: 30 * MINUTE_MS, batch: undefined };
const BATCHING: Kind = { recognisesMs: 30 * MINUTE_MS, batch: 8 };

/**
 * RECEIVING is a simulated receiver of a webhook that accepts events in any order. IN_ORDER gets an event only after
 * all earlier events of the same stream. Both recognise a repeated event at any time.
 */
const RECEIVING: Kind = { recognisesMs: Infinity, batch: undefined };
const IN_ORDER: Kind = { ...RECEIVING, isInOrder: true };

/** fast-check generator of one or several channels. A chat may be of any kind, so that direct sends meet each kind. */
const kinds: fc.Arbitrary<History["kinds"]> = fc
  .record({
    chat: fc.constantFrom(DOUBLING, DOUBLING, KNOWING, BATCHING),
    messaging: fc.constantFrom(undefined, undefined, DOUBLING, KNOWING),
    ads: fc.constantFrom(undefined, undefined, BATCHING),
    webhook: fc.constantFrom(undefined, undefined, RECEIVING, IN_ORDER),
  })
  .map(
    (chosen) => new Map(Object.entries(chosen).flatMap(([name, kind]) => (kind ? [[name as ChannelName, kind]] : []))),
  );

export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.integer(),
  kinds,
  digestAfterMs: fc.constantFrom(undefined, 30_000),
  faults: fc.constantFrom(0, 0, 5),
  steps: fc.array(step, { minLength: 5, maxLength: 16 }),
});
