import type { ChannelName } from "../../events/channel-and-lane-names.ts";
import type { Config } from "./config.ts";

/**
 * Lists all optional parts of the configuration, such as channels, in the order in which operators usually set them up.
 */
export function listParts(config: Config) {
  const { x, outreach, meta, openAiAds, snap, chat, messaging, webhooks } = config;
  return {
    x: part("outreach (X_CLIENT_ID)", x, "X_CLIENT_ID=", "X_CLIENT_SECRET="),
    template: part("the message (MESSAGE_TEMPLATE)", outreach.template, "MESSAGE_TEMPLATE='Hi {{name|there}}, …'"),
    ads: part("ads", meta, "META_PIXEL_ID=", "META_ACCESS_TOKEN="),
    "ads-openai": part("ads-openai", openAiAds, "OPENAI_ADS_PIXEL_ID=", "OPENAI_ADS_API_KEY="),
    "ads-snap": part("ads-snap", snap, "SNAP_PIXEL_ID=", "SNAP_ACCESS_TOKEN="),
    chat: part("chat", chat, "CHAT_PROVIDER=slack", "CHAT_WEBHOOK_URL="),
    messaging: part("messaging", messaging, "MESSAGING_PROVIDER=telegram", "TELEGRAM_BOT_TOKEN=", "TELEGRAM_CHAT_ID="),
    webhook: part(
      webhooks.map(({ name }) => name).join(", "),
      webhooks[0],
      "WEBHOOK_URL=",
      "WEBHOOK_SECRET=whsec_…",
      "WEBHOOK_EVENTS=LinkClicked",
    ),
  };
}

/** Creates an optional part. `name` is shown to operators. `lines` are the lines of `.env` that configure the part. */
function part(name: string, configured: object | undefined, ...lines: string[]) {
  return { name, isConfigured: configured !== undefined, lines };
}

/** Lists the names of the optional parts that are configured, and of those that are not. */
export function listPartNames(config: Config): Readonly<Record<"configured" | "missing", readonly string[]>> {
  const { template, webhook, "ads-openai": openAi, "ads-snap": snap, ...others } = listParts(config);
  // The message template is of use only with X. A webhook or a second ads network is listed only if it is configured,
  // because few operators need one.
  const wanted = [others.x, ...(config.x === undefined ? [] : [template]), others.ads, others.chat, others.messaging];
  const parts = [...wanted, ...[openAi, snap, webhook].filter(({ isConfigured }) => isConfigured)];
  const names = (isConfigured: boolean) =>
    parts.filter((one) => one.isConfigured === isConfigured).map(({ name }) => name);
  return { configured: names(true), missing: names(false) };
}

/** Lists the channels that have credentials. */
export function listConfiguredChannels({
  meta,
  openAiAds,
  snap,
  chat,
  messaging,
  webhooks,
}: Config): readonly ChannelName[] {
  const clicks = Object.entries({ ads: meta, "ads-openai": openAiAds, "ads-snap": snap, chat, messaging }).flatMap(
    ([name, part]) => (part ? [name] : []),
  );
  return [...(clicks as ChannelName[]), ...webhooks.map(({ name }) => name)];
}
