import { Argument, InvalidArgumentError, Option } from "../shared/command.ts";
import { channelName, CHANNELS, isWebhook, type ChannelName } from "../../../events/channel.ts";
import { listChannels, type Deliveries } from "../../../projections/deliveries.ts";
import type { Config } from "../../config/config.ts";
import { Value } from "@sinclair/typebox/value";
import { DISPATCH_FILTER_WORDS, selectedChannels } from "../../delivery/dead-letter-filter.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { usageError } from "../../platform/service-error.ts";

/** Completed are the channels that each log has; webhooks with a name are known once the log is open. */
const completed = { argChoices: [...CHANNELS] };

export const channelOption = () =>
  Object.assign(
    new Option("--channel <name>", "only this channel, also webhook-NAME").argParser(parseChannel),
    completed,
  );
export const channelArgument = () =>
  Object.assign(new Argument("<channel>", "the channel, also webhook-NAME").argParser(parseChannel), completed);

function parseChannel(name: string): ChannelName {
  if (Value.Check(channelName, name)) return name;
  throw new InvalidArgumentError(`Allowed choices are ${CHANNELS.join(", ")}, or webhook-NAME.`);
}

/** The channel of `--channel`, or all. Throws a ServiceError (usage) for one that the log does not know. */
export function selectChannels(deliveries: Deliveries, name: ChannelName | undefined): readonly ChannelName[] {
  if (name !== undefined && !(name in deliveries))
    throw usageError(`the log has no channel ${name}: ${listChannels(deliveries).join(", ")}`);
  return selectedChannels(omitUndefined({ channel: name }), deliveries);
}

/** Whether this command's own configuration has credentials for it; the service's may differ. */
export function isConfigured({ meta, chat, messaging, webhooks }: Config, channel: ChannelName): boolean {
  if (isWebhook(channel)) return webhooks.some(({ name }) => name === channel);
  return { ads: meta, chat, messaging }[channel] !== undefined;
}

/** What selects dead letters and dispatches in doubt, beside their channel. */
export const errorOption = () => new Option("--error <class>", DISPATCH_FILTER_WORDS.error);
export const linkOption = () => new Option("--link <link>", DISPATCH_FILTER_WORDS.link);
export const fromOption = () => new Option("--from <moment>", DISPATCH_FILTER_WORDS.from);
export const toOption = () => new Option("--to <moment>", DISPATCH_FILTER_WORDS.to);
