import type { ChannelName } from "../../events/channel.ts";
import type { Config } from "./config.ts";

export type PartName = "x" | "template" | ChannelName;

/** What works only where it is configured. */
export interface ConfigPart {
  readonly isConfigured: boolean;
  /** The lines of `.env` that configure it. */
  readonly lines: readonly string[];
}

export type ConfigParts = Readonly<Record<PartName, ConfigPart>>;

/** Everything that may be left out of the configuration, in the order in which it is set up. */
export function listParts(
  config: Pick<Config, "x" | "outreach" | "meta" | "chat" | "messaging" | "webhook">,
): ConfigParts {
  const { x, outreach, meta, chat, messaging, webhook } = config;
  return {
    x: part(x, "X_CLIENT_ID=", "X_CLIENT_SECRET="),
    template: part(outreach.template, "MESSAGE_TEMPLATE='Hi {{name|there}}, …'"),
    ads: part(meta, "META_PIXEL_ID=", "META_ACCESS_TOKEN="),
    chat: part(chat, "CHAT_PROVIDER=slack", "CHAT_WEBHOOK_URL="),
    messaging: part(messaging, "MESSAGING_PROVIDER=telegram", "TELEGRAM_BOT_TOKEN=", "TELEGRAM_CHAT_ID="),
    webhook: part(webhook, "WEBHOOK_URL=", "WEBHOOK_SECRET=whsec_…", "WEBHOOK_EVENTS=LinkClicked"),
  };
}

function part(configured: object | undefined, ...lines: string[]): ConfigPart {
  return { isConfigured: configured !== undefined, lines };
}
