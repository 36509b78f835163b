import { createHash } from "node:crypto";
import type { Config } from "../config/config.ts";
import { partsOf } from "../config/parts.ts";
import type { Instance } from "../log/instances.ts";
import { isoTime, makeId, systemClock } from "../platform/clock.ts";
import { VERSION } from "../platform/version.ts";

/** How this instance shows itself to all others of its log. No secret is in it, nor in its digest. */
export function ownInstance(config: Config): Instance {
  const { outreach, bots, digestAfterSeconds, retentionDays, http } = config;
  const parts = Object.entries(partsOf(config)).filter(([, { isConfigured }]) => isConfigured);
  const shared = { outreach, bots, digestAfterSeconds, retentionDays, parts: parts.map(([name]) => name) };
  return {
    id: makeId(),
    url: http.publicUrl,
    version: VERSION,
    started_at: isoTime(systemClock()),
    configuration: createHash("sha256").update(JSON.stringify(shared)).digest("hex").slice(0, DIGITS),
    settings: {
      DAILY_LIMIT: String(outreach.dailyLimit),
      QUOTA_TIMEZONE: outreach.timezone,
      MESSAGE_TEMPLATE: outreach.template === undefined ? "none" : `the text ${outreach.template.id}`,
    },
  };
}

/** Of the digest: it tells a few configurations apart. */
const DIGITS = 12;
