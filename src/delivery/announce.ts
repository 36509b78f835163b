import type { ChannelName } from "../../events/channel.ts";
import { SERVICE_METADATA, STREAMS, type NewEvent, type EventLog } from "../log/event-log.ts";
import type { Logger } from "../platform/logger.ts";
import type { Projector } from "../projector/projector.ts";

/** Announces to the operator what calls for action: on chat, or on messaging where chat is missing, suspended or what failed. */
export type Announce = (text: string, key: string, failed?: ChannelName) => Promise<void>;

interface AnnounceDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
  readonly configured: readonly ChannelName[];
  readonly logger: Logger;
}

const READ_BY_PEOPLE = ["chat", "messaging"] as const;

/** `key` names the occasion; each occasion is announced once, over restarts too. */
export function createAnnounce({ eventLog, projector, configured, logger }: AnnounceDeps): Announce {
  const isWorking = (name: ChannelName): boolean =>
    configured.includes(name) && projector.state("deliveries")[name].suspended === null;

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
