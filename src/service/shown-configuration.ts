import { hash } from "node:crypto";
import type { Config } from "../config/config.ts";
import { listParts } from "../config/optional-parts.ts";
import type { ConsoleSettings } from "../console/page-context.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import { isoTime, makeId, systemClock } from "../platform/clock.ts";
import { VERSION } from "../platform/version.ts";

type Channels = Pick<ConsoleSettings, "configured" | "recognisesMs">;
type Given = Pick<ConsoleSettings, "hashesOf" | "wantsToken" | "tokens">;

/** Returns the configuration that the console's pages show, without secrets. */
export function consoleSettings(config: Config, { configured, recognisesMs }: Channels, given: Given): ConsoleSettings {
  const { dailyLimit, timezone, window, template, requireConsent, sources } = config.outreach;
  const callback = `${config.http.publicUrl}/social/callback`;
  const outreach = { dailyLimit, timezone, window, template, requireConsent, sources };
  const { traceUrl } = config;
  return { ...given, configured, recognisesMs, ...outreach, parts: listParts(config), callback, traceUrl };
}

/** Describes this instance to all others of its log. Neither the description nor its digest holds a secret. */
export function ownInstance(config: Config): Instance {
  const { outreach, bots, digestAfterSeconds, retentionDays, archiveAfterDays, auditReads, webhooks, http } = config;
  const carried = webhooks.map(({ name, types, filter, isInOrder }) => ({ name, types, filter, isInOrder }));
  const parts = Object.entries(listParts(config)).filter(([, { isConfigured }]) => isConfigured);
  const shared = {
    outreach,
    bots,
    digestAfterSeconds,
    retentionDays,
    archiveAfterDays,
    auditReads,
    parts: parts.map(([name]) => name),
    carried,
  };
  return {
    id: makeId(),
    url: http.publicUrl,
    version: VERSION,
    started_at: isoTime(systemClock()),
    configuration: hash("sha256", JSON.stringify(shared)).slice(0, DIGITS),
    settings: {
      DAILY_LIMIT: String(outreach.dailyLimit),
      QUOTA_TIMEZONE: outreach.timezone,
      SEND_WINDOW: outreach.window === undefined ? "none" : `${outreach.window.text} (${outreach.window.zone})`,
      MESSAGE_TEMPLATE: outreach.template === undefined ? "none" : `the text ${outreach.template.id}`,
      MESSAGE_TEMPLATE_NAME: outreach.template?.name ?? "none",
    },
  };
}

/** Enough to distinguish a few configurations. */
const DIGITS = 12;
