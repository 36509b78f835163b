import { CHANNELS, type ChannelName } from "../../events/channel.ts";
import { OWN_CAUSE, STREAMS, type Fact, type Journal } from "../log/event-log.ts";
import type { Logger } from "../platform/logger.ts";
import type { Projector } from "../projector/projector.ts";

/** Tells the operator what calls for action: on chat, or on messaging where chat is not there, stopped or what failed. */
export type Announce = (text: string, key: string, failed?: ChannelName) => Promise<void>;

interface AnnounceDeps {
  readonly journal: Journal;
  readonly projector: Projector;
  readonly configured: readonly ChannelName[];
  readonly log: Logger;
}

/** `key` names the occasion; each occasion is announced once, over restarts too. */
export function createAnnounce({ journal, projector, configured, log }: AnnounceDeps): Announce {
  const works = (name: ChannelName): boolean =>
    configured.includes(name) && projector.state("deliveries")[name].stopped === null;

  return async (text, key, failed) => {
    const channel = CHANNELS.find((name) => name !== "ads" && name !== failed && works(name));
    if (channel === undefined) return log.warn(text);
    const fact: Fact =
      channel === "chat"
        ? { type: "NotificationRequested", data: { message: text, service: "reachlog", level: "critical" } }
        : { type: "MessageRequested", data: { text: `reachlog: ${text}` } };
    await journal.append(STREAMS.requests, [fact], OWN_CAUSE, { key: `announce/${key}` });
  };
}
