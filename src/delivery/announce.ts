import { CHANNELS, type ChannelName } from "../../events/channel.ts";
import { OWN_CAUSE, STREAMS, type Fact, type Journal } from "../journal.ts";
import type { Logger } from "../log.ts";

/** Tells the operator what calls for action: on chat, or on messaging where chat is not there or is what failed. */
export type Announce = (text: string, key: string, failed?: ChannelName) => Promise<void>;

/** `key` names the occasion; each occasion is announced once, over restarts too. */
export function createAnnounce(journal: Journal, configured: readonly ChannelName[], log: Logger): Announce {
  return async (text, key, failed) => {
    const channel = CHANNELS.find((name) => name !== "ads" && name !== failed && configured.includes(name));
    if (channel === undefined) return log.warn(text);
    const fact: Fact =
      channel === "chat"
        ? { type: "NotificationRequested", data: { message: text, service: "reachlog", level: "critical" } }
        : { type: "MessageRequested", data: { text: `reachlog: ${text}` } };
    await journal.append(STREAMS.requests, [fact], OWN_CAUSE, { key: `announce/${key}` });
  };
}
