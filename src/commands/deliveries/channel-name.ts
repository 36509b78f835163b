import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import type { Config } from "../../config/config.ts";
import { UsageError } from "../command.ts";
import { printable } from "../table.ts";

/** The channels that `--channel` means; without it all of them. */
export function channelsOf(name: string | undefined): readonly ChannelName[] {
  return name === undefined ? CHANNELS : [channelOf(name)];
}

/** Whether this command's own configuration has credentials for it; the service's may differ. */
export function isConfigured({ meta, chat, messaging }: Config, channel: ChannelName): boolean {
  return { ads: meta, chat, messaging }[channel] !== undefined;
}

/** Throws UsageError on what is no channel. */
export function channelOf(name: string): ChannelName {
  const channel = CHANNELS.find((one) => one === name);
  if (channel === undefined) throw new UsageError(`there is no channel "${printable(name.slice(0, 40))}"`);
  return channel;
}
