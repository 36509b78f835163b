import type { Config } from "../../config/config.ts";
import { listParts, type PartName } from "../../config/parts.ts";

const NAMES: Readonly<Record<PartName, string>> = {
  x: "outreach (X_CLIENT_ID)",
  template: "the message (MESSAGE_TEMPLATE)",
  ads: "ads",
  chat: "chat",
  messaging: "messaging",
  webhook: "webhook",
};

/** What may be left out of the configuration, by name: what is in it, and what is not. */
export function configuredParts(config: Config): Readonly<Record<"configured" | "missing", readonly string[]>> {
  const parts = Object.entries(listParts(config)) as [PartName, { readonly isConfigured: boolean }][];
  // Without X a message is of no use, and a missing webhook is no fault.
  const isWanted = { template: config.x !== undefined, webhook: config.webhook !== undefined };
  const wanted = parts.filter(([name]) => !(name in isWanted) || isWanted[name as keyof typeof isWanted]);
  const names = (isConfigured: boolean) =>
    wanted.filter(([, part]) => part.isConfigured === isConfigured).map(([name]) => NAMES[name]);
  return { configured: names(true), missing: names(false) };
}
