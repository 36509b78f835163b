import { hash } from "node:crypto";
import type { Config } from "../config/config.ts";
import { listParts } from "../config/optional-parts.ts";
import type { ConsoleSettings } from "../console/page-context.ts";
import { describeExpiries, type SourcedToken } from "../config/parse-api-tokens.ts";
import { WHAT_IF_RULES } from "../config/parse-what-if-rules.ts";
import { WHY_CHARACTERS_MAX } from "../delivery/find-and-decide-dead-letters.ts";
import { SENT_BYTES_MAX, SENT_SUPPRESSIONS_BYTES_MAX } from "../recipients/file/format-and-limits.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import type { Instance } from "../log/instance-heartbeats.ts";
import { isoTime, makeId, systemClock } from "../platform/clock-ids-and-timers.ts";
import { VERSION } from "../platform/version.ts";

type Channels = Pick<ConsoleSettings, "configured" | "recognisesMs">;

interface Given {
  readonly hashesOf: HashesOf;
  readonly commonRules: ConsoleSettings["campaigns"]["commonRules"];
  readonly wantsToken: () => boolean;
  readonly tokens: () => readonly SourcedToken[];
}

/** Returns the configuration that the console's pages show, without secrets. */
export function consoleSettings(config: Config, { configured, recognisesMs }: Channels, given: Given): ConsoleSettings {
  const {
    dailyLimit,
    gapDays,
    timezone,
    window,
    template,
    stopWords,
    requireConsent,
    sources,
    sendSpacingSeconds,
    report,
  } = config.outreach;
  const callback = `${config.http.publicUrl}/social/callback`;
  const outreach = {
    dailyLimit,
    gapDays,
    timezone,
    window,
    template,
    stopWords,
    requireConsent,
    sources,
    sendSpacingSeconds,
    report,
  };
  const { traceUrl } = config;
  return {
    ...given,
    ...outreach,
    campaigns: { config, commonRules: given.commonRules },
    configured,
    recognisesMs,
    parts: listParts(config),
    hasSignals: config.x?.appBearer !== undefined,
    callback,
    traceUrl,
    whatIfRules: WHAT_IF_RULES,
    limits: {
      recipientsBytes: SENT_BYTES_MAX,
      suppressionsBytes: SENT_SUPPRESSIONS_BYTES_MAX,
      whyCharacters: WHY_CHARACTERS_MAX,
    },
    expiringTokens: (now) => describeExpiries(given.tokens(), now),
  };
}

/**
 * Describes this instance to the other instances of its log. Neither the description nor the digest of the
 * configuration reveals a secret.
 */
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

/** Number of digits of a configuration's digest: enough to distinguish a few configurations. */
const DIGITS = 12;
