import type { Config } from "./config.ts";

/** Everything that may be left out of the configuration, in the order in which it is set up. */
export function listParts(config: Pick<Config, "x" | "outreach" | "meta" | "chat" | "messaging" | "webhooks">) {
  const { x, outreach, meta, chat, messaging, webhooks } = config;
  return {
    x: part("outreach (X_CLIENT_ID)", x, "X_CLIENT_ID=", "X_CLIENT_SECRET="),
    template: part("the message (MESSAGE_TEMPLATE)", outreach.template, "MESSAGE_TEMPLATE='Hi {{name|there}}, …'"),
    ads: part("ads", meta, "META_PIXEL_ID=", "META_ACCESS_TOKEN="),
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

export type ConfigParts = ReturnType<typeof listParts>;

/** `name` is shown to operators. `lines` are the lines of `.env` that configure the part. */
function part(name: string, configured: object | undefined, ...lines: string[]) {
  return { name, isConfigured: configured !== undefined, lines };
}

/** The names of the parts that are in the configuration, and of those that are not. */
export function listPartNames(config: Config): Readonly<Record<"configured" | "missing", readonly string[]>> {
  const { template, webhook, ...others } = listParts(config);
  // Without X a message is of no use, and a missing webhook is no fault.
  const wanted = [others.x, ...(config.x === undefined ? [] : [template]), others.ads, others.chat, others.messaging];
  const parts = webhook.isConfigured ? [...wanted, webhook] : wanted;
  const names = (isConfigured: boolean) =>
    parts.filter((one) => one.isConfigured === isConfigured).map(({ name }) => name);
  return { configured: names(true), missing: names(false) };
}
