import { Argument, Option } from "../shared/command.ts";
import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import type { Config } from "../../config/config.ts";

export const channelOption = () => new Option("--channel <name>", "only this channel").choices(CHANNELS);
export const channelArgument = () => new Argument("<channel>", "the channel").choices(CHANNELS);

/** The channel of `--channel`, or all. */
export function selectChannels(name: ChannelName | undefined): readonly ChannelName[] {
  return name === undefined ? CHANNELS : [name];
}

/** Whether this command's own configuration has credentials for it; the service's may differ. */
export function isConfigured({ meta, chat, messaging, webhook }: Config, channel: ChannelName): boolean {
  return { ads: meta, chat, messaging, webhook }[channel] !== undefined;
}
