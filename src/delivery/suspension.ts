import type { Secret } from "../platform/secret.ts";
import { OWN_CAUSE, STREAMS, type Fact, type Journal } from "../log/event-log.ts";
import { faultFields, type Logger } from "../platform/logger.ts";
import type { Channel, DispatchResult } from "../networks/network.ts";
import type { Projector } from "../projector/projector.ts";
import type { Announce } from "./announce.ts";
import type { Item } from "./outbox-window.ts";

export interface StoppageDeps {
  readonly channel: Channel;
  readonly journal: Journal;
  readonly projector: Projector;
  readonly announce: Announce;
  readonly log: Logger;
  /** A keyed hash, so that the log can tell another credential from the one that was refused. */
  readonly mark: (credential: Secret) => string;
}

/** Whether a channel is refused as a whole: by the log, so that it outlasts a restart. */
export interface Stoppage {
  isStopped(): boolean;
  /** Why, while it is. */
  detail(): string;
  /** What an answer says of the channel, to be recorded with the outcome of `items`. */
  learn(result: DispatchResult, items: readonly Item[]): readonly Fact[];
  /** Whether the log took it or not, what was learnt is no longer on its way there. */
  recorded(learnt: readonly Fact[]): void;
  /** Tells the operator, once for each stop. */
  tell(): Promise<void>;
  /**
   * Goes on with a channel that was stopped, where the credential is another one now; else it makes sure that the
   * operator knows. Never rejects.
   */
  resumeIfChanged(): Promise<void>;
}

export function createStoppage({ channel, journal, projector, announce, log, mark }: StoppageDeps): Stoppage {
  const { name, network } = channel;
  const stopped = () => projector.state("deliveries")[name].stopped;
  /** Why the channel is being stopped, until the log has it. */
  let stopping: string | undefined;
  let told = "";

  const tell = async (): Promise<void> => {
    const now = stopped();
    if (now === null || told === now.since) return;
    told = now.since;
    const text = `${network} refuses the ${name} channel, which is stopped: ${now.detail}. Once it is mended: reachlog deliveries resume ${name}`;
    await announce(text, `stopped/${name}/${now.since}`, name).catch((fault: unknown) =>
      log.error("an announcement failed", faultFields(fault)),
    );
  };

  return {
    isStopped: () => stopping !== undefined || stopped() !== null,
    detail: () => stopped()?.detail ?? stopping ?? "",
    learn(result, items) {
      if (result.outcome === "delivered" && stopped() !== null && items.every(isTest)) {
        return [{ type: "ChannelResumed", data: { channel: name, why: "delivered" } }];
      }
      const isKnown = stopping !== undefined || stopped() !== null;
      if (result.outcome !== "refused" || !result.channel || isKnown) return [];
      stopping = result.detail;
      const status = result.status === undefined ? {} : { status: result.status };
      const data = { channel: name, network, ...status, detail: result.detail, credential: mark(channel.credential) };
      return [{ type: "ChannelStopped", data }];
    },
    recorded(learnt) {
      if (learnt.some(({ type }) => type === "ChannelStopped")) stopping = undefined;
    },
    tell,
    async resumeIfChanged() {
      const now = stopped();
      if (now === null) return;
      if (now.credential === mark(channel.credential)) return tell();
      const fact: Fact = { type: "ChannelResumed", data: { channel: name, why: "credential_changed" } };
      try {
        const appended = await journal.append(STREAMS.delivery(name), [fact], OWN_CAUSE);
        await projector.until(appended.last);
      } catch (fault) {
        log.error("a stopped channel could not be resumed", { channel: name, ...faultFields(fault) });
      }
    },
  };
}

function isTest({ event }: Item): boolean {
  return event.type === "ChannelTestRequested";
}
