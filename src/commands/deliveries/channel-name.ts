import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import { UsageError } from "../command.ts";
import { printable } from "../table.ts";

/** The channels that `--channel` means; without it all of them. */
export function channelsOf(name: string | undefined): readonly ChannelName[] {
  return name === undefined ? CHANNELS : [channelOf(name)];
}

/** Throws UsageError on what is no channel. */
export function channelOf(name: string): ChannelName {
  const channel = CHANNELS.find((one) => one === name);
  if (channel === undefined) throw new UsageError(`there is no channel "${printable(name.slice(0, 40))}"`);
  return channel;
}
