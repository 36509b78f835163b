import type { Config } from "../config/config.ts";
import { partsOf } from "../config/parts.ts";
import type { ConsoleSettings } from "../console/view.ts";

/** What does not come from the configuration alone. */
type Given = Pick<ConsoleSettings, "configured" | "hashesOf" | "wantsToken">;

/** What the console's pages know of the configuration: no secret. */
export function consoleSettings(config: Config, given: Given): ConsoleSettings {
  const { dailyLimit, timezone, template, requireConsent, sources } = config.outreach;
  const callback = `${config.http.publicUrl}/social/callback`;
  return { ...given, dailyLimit, timezone, parts: partsOf(config), template, requireConsent, sources, callback };
}
