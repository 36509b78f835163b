import { given, type RawEnvironment } from "./environment.ts";
import type { Report } from "./faults.ts";

/** Settings that are checked, but that this version does not act on: silence would look like success. */
const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  RETENTION_DAYS: "personal data is kept",
};

export function warnOfNoEffect(env: RawEnvironment, report: Report): void {
  for (const [name, instead] of Object.entries(WITHOUT_EFFECT)) {
    if (given(env, name) !== undefined) report.warn(`${name} has no effect in this version: ${instead}.`);
  }
}
