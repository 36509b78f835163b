import type { Secret } from "../platform/secret.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent, type EventLog } from "../log/event-log.ts";
import { record } from "../log/handle.ts";
import { errorFields, type Logger } from "../platform/logger.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import type { Projector } from "../projector/projector.ts";
import type { Announce } from "./announce.ts";
import { isTest } from "./dispatch.ts";
import type { PendingDispatch } from "./outbox-window.ts";

export interface SuspensionDeps {
  readonly channel: Channel;
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly announce: Announce;
  readonly logger: Logger;
  /** A keyed hash, so that the log can tell another credential from the one that was refused. */
  readonly mark: (credential: Secret) => string;
}

/** Whether a channel is refused as a whole: by the log, so that it outlasts a restart. */
export interface Suspension {
  isSuspended(): boolean;
  /** Why, while it is. */
  detail(): string;
  /** What an answer says of the channel, to be recorded with the outcome of `items`. */
  learn(result: DispatchResult, items: readonly PendingDispatch[]): readonly NewEvent[];
  /** Whether the log took it or not, what was learnt is no longer on its way there. */
  recorded(learnt: readonly NewEvent[]): void;
  /** Tells the operator, once for each stop. */
  tell(): Promise<void>;
  /**
   * Goes on with a channel that was suspended, where the credential is another one now; else it makes sure that the
   * operator knows. Never rejects.
   */
  resumeIfChanged(): Promise<void>;
}

export function createSuspension({ channel, eventLog, projector, announce, logger, mark }: SuspensionDeps): Suspension {
  const { name, network } = channel;
  const suspended = () => projector.state("deliveries")[name].suspended;
  /** Why the channel is being suspended, until the log has it. */
  let stopping: string | undefined;
  let told = "";

  const tell = async (): Promise<void> => {
    const now = suspended();
    if (now === null || told === now.since) return;
    told = now.since;
    const text = `${network} refuses the ${name} channel, which is suspended: ${now.detail}. Once it is mended: reachlog deliveries resume ${name}`;
    await announce(text, `suspended/${name}/${now.since}`, name).catch((fault: unknown) =>
      logger.error("an announcement failed", errorFields(fault)),
    );
  };

  return {
    isSuspended: () => stopping !== undefined || suspended() !== null,
    detail: () => suspended()?.detail ?? stopping ?? "",
    learn(result, items) {
      if (result.outcome === "delivered" && suspended() !== null && items.every(isTest)) {
        return [{ type: "ChannelResumed", data: { channel: name, why: "delivered" } }];
      }
      const isKnown = stopping !== undefined || suspended() !== null;
      if (result.outcome !== "refused" || !result.channel || isKnown) return [];
      stopping = result.detail;
      const status = result.status === undefined ? {} : { status: result.status };
      const data = { channel: name, network, ...status, detail: result.detail, credential: mark(channel.credential) };
      return [{ type: "ChannelSuspended", data }];
    },
    recorded(learnt) {
      if (learnt.some(({ type }) => type === "ChannelSuspended")) stopping = undefined;
    },
    tell,
    async resumeIfChanged() {
      const now = suspended();
      if (now === null) return;
      if (now.credential === mark(channel.credential)) return tell();
      const newEvent: NewEvent = { type: "ChannelResumed", data: { channel: name, why: "credential_changed" } };
      try {
        await record({ eventLog, projector }, STREAMS.delivery(name), [newEvent], { metadata: SERVICE_METADATA });
      } catch (fault) {
        logger.error("a suspended channel could not be resumed", { channel: name, ...errorFields(fault) });
      }
    },
  };
}
