import { createHmac } from "node:crypto";
import type { Secret } from "../platform/secret.ts";
import {
  type Announce,
  type EventMetadata,
  type LogContext,
  type NewEvent,
  SERVICE_METADATA,
  type StateContext,
  STREAMS,
} from "../log/event-log.ts";
import { record } from "../log/decide-and-append.ts";
import { errorFields } from "../platform/logger.ts";
import type { DispatchResult } from "../networks/network.ts";
import { findChannel } from "../../projections/deliveries.ts";
import type { ChannelContext } from "./attempt-dispatches.ts";
import { uncertainSinceField, type AttemptOutcome } from "./attempt-outcome.ts";
import { isTest, type OutboxWindow, type PendingDispatch } from "./outbox-window.ts";
import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";
import type { Projector } from "../projector/projector.ts";

const READ_BY_PEOPLE = ["chat", "messaging"] as const;

/**
 * Announces what needs an operator's action on the chat channel, or on messaging if chat is missing, suspended or the
 * channel that failed. Announces each occasion, named by `key`, only once, even after a restart.
 */
export function createAnnounce(
  { eventLog, logger }: LogContext,
  projector: Projector,
  configured: readonly ChannelName[],
): Announce {
  const isWorking = (name: ChannelName): boolean =>
    configured.includes(name) &&
    // The channel counts as working until the projection `deliveries` is ready and tells if the channel is suspended.
    // The alert is an event in the log, so it is sent once the channel's dispatcher runs.
    (!projector.isFolded("deliveries") || findChannel(projector.state("deliveries"), name).suspended === null);

  return async (text, key, failed) => {
    const channel = READ_BY_PEOPLE.find((name) => name !== failed && isWorking(name));
    if (channel === undefined) return logger.warn(text);
    const newEvent: NewEvent =
      channel === "chat"
        ? { type: "NotificationRequested", data: { message: text, service: "reachlog", level: "critical" } }
        : { type: "MessageRequested", data: { text: `reachlog: ${text}` } };
    await eventLog.append(STREAMS.requests, [newEvent], SERVICE_METADATA, { key: `announce/${key}` });
  };
}

/**
 * Suspension of a channel whose network refuses all requests. The state is in the log, so that it survives a restart.
 */
export type Suspension = ReturnType<typeof createSuspension>;

export function createSuspension(context: ChannelContext) {
  const { channel, lease, projector, announce, logger, hashCredential } = context;
  const { name, network } = channel;
  const suspended = () => findChannel(projector.state("deliveries"), name).suspended;
  /** Reason why the channel is being suspended, until the suspension is in the log. */
  let suspending: string | undefined;
  /** Start time of the suspension that was announced last. */
  let announced = "";

  const announceOnce = async (): Promise<void> => {
    const now = suspended();
    if (now === null || announced === now.since) return;
    announced = now.since;
    const text = `${network} refuses the ${name} channel, so it is suspended: ${now.detail}. Fix the cause, then run reachlog deliveries resume ${name}`;
    await announce(text, `suspended/${name}/${now.since}`, name).catch((fault: unknown) =>
      logger.error("an announcement failed", errorFields(fault)),
    );
  };

  return {
    isSuspended: (): boolean => suspending !== undefined || suspended() !== null,
    /** Returns why the channel is suspended; empty if it is not. */
    detail: (): string => suspended()?.detail ?? suspending ?? "",
    /**
     * Returns events that suspend or resume the channel after an answer, to be recorded with the outcomes of `items`.
     */
    learn(result: DispatchResult, items: readonly PendingDispatch[]): readonly NewEvent[] {
      if (result.outcome === "delivered" && suspended() !== null && items.every(isTest)) {
        return [{ type: "ChannelResumed", data: { channel: name, why: "delivered" } }];
      }
      const isKnown = suspending !== undefined || suspended() !== null;
      if (result.outcome !== "refused" || !result.channel || isKnown) return [];
      suspending = result.detail;
      const credential = hashCredential(channel.credential);
      const { status, detail } = result;
      const data = { channel: name, network, ...omitUndefined({ status }), detail, credential };
      return [{ type: "ChannelSuspended", data }];
    },
    /** A request in flight calls this once it has appended the events that `learn` returned, or failed to. */
    recorded(learnt: readonly NewEvent[]): void {
      if (learnt.some(({ type }) => type === "ChannelSuspended")) suspending = undefined;
    },
    /** Announces a new suspension to the operator, once. Never rejects. */
    announce: announceOnce,
    /**
     * Resumes a suspended channel if its credential has changed; else makes sure that the operator knows of the
     * suspension. Never rejects.
     */
    async resumeIfChanged(): Promise<void> {
      const now = suspended();
      if (now === null) return;
      if (now.credential === hashCredential(channel.credential)) return announceOnce();
      const newEvent: NewEvent = { type: "ChannelResumed", data: { channel: name, why: "credential_changed" } };
      try {
        await record(context, STREAMS.delivery(name), [newEvent], {
          metadata: SERVICE_METADATA,
          lease,
        });
      } catch (fault) {
        logger.error("a suspended channel could not be resumed", { channel: name, ...errorFields(fault) });
      }
    },
  };
}

/**
 * Returns the outcome of a direct dispatch to a suspended channel, so that the waiting caller learns the reason at
 * once.
 */
export function rejectWhileSuspended(lane: OutboxWindow, item: PendingDispatch, detail: string): AttemptOutcome {
  const why = { attempt: item.attempts, detail: `the channel is suspended: ${detail}`, refused: true };
  return { type: "DispatchAbandoned", request: { ...why, ...uncertainSinceField(lane.uncertainSince(item)) } };
}

/**
 * Creates a function that hashes credentials with a key, so that only equality shows. `key` must stay the same after a
 * restart.
 */
export function createCredentialHash(key: Uint8Array): (credential: Secret) => string {
  return (credential) => createHmac("sha256", key).update(credential.reveal(), "utf8").digest("base64url");
}

/** Result of resuming a channel. `repeated`: another caller ended the same suspension at the same moment. */
export type Resumed =
  { readonly kind: "resumed"; readonly since: string; readonly repeated: boolean } | { readonly kind: "not_suspended" };

/**
 * Resumes a suspended channel: pending dispatches are sent at once. If the network still refuses the channel, it is
 * suspended again.
 */
export async function resumeChannel(
  { eventLog, projector }: StateContext,
  channel: ChannelName,
  metadata: EventMetadata,
): Promise<Resumed> {
  const { suspended } = findChannel(projector.state("deliveries"), channel);
  if (suspended === null) return { kind: "not_suspended" };
  const { since } = suspended;
  const newEvent: NewEvent = { type: "ChannelResumed", data: { channel, why: "by_hand" } };
  // Because of this idempotency key, only one of several simultaneous calls of operators ends a suspension.
  const key = `resume/${channel}/${since}`;
  const { last, repeated } = await eventLog.append(STREAMS.delivery(channel), [newEvent], metadata, { key });
  await projector.until(last);
  return { kind: "resumed", since, repeated };
}
