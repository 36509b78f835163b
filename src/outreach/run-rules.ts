import type { RunRules } from "../../events/outreach.ts";
import { toSendWindow } from "../config/send-window.ts";
import type { Config } from "../config/config.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { FindLinkKeys } from "../privacy/person-keys.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import { toTemplateNames, type Template } from "../template/template.ts";
import type { OutreachRules } from "./decide.ts";

/** Rules of a run that a what-if question may replace by other ones. */
export interface RulesInForce {
  readonly dailyLimit: OutreachRules["dailyLimit"];
  readonly requireConsent: OutreachRules["requireConsent"];
  readonly stopAfterFailures: OutreachRules["stopAfterFailures"];
  readonly window: OutreachRules["window"];
  readonly template: OutreachRules["template"];
  readonly timezone: string;
}

/**
 * Changes of rules in a what-if question. An absent member keeps the rule that the run had; an undefined one is a
 * value, such as no limit.
 */
export type RuleChanges = Partial<RulesInForce>;

/** Parts from which the rules of a run are made, except the template. */
export interface RuleParts {
  readonly config: Config;
  readonly hashesOf: HashesOf;
  readonly findLinkKeys: FindLinkKeys;
  readonly keyring: Keyring;
}

/** Returns the configured rules, for runs with this template. */
export function toOutreachRules(
  { config, hashesOf, findLinkKeys, keyring: { isForgotten } }: RuleParts,
  template: Template,
): OutreachRules {
  const { requireConsent, dailyLimit, stopAfterFailures, window } = config.outreach;
  const limits = { requireConsent, dailyLimit, stopAfterFailures, window };
  return { template, ...limits, hashes: hashesOf, findLinkKeys, isForgotten };
}

/**
 * Converts the rules that a run decides by (its limits, sending window and template) to the form that the `RunStarted`
 * event records.
 */
export function toRunRules(
  { dailyLimit, requireConsent, stopAfterFailures, window, template }: OutreachRules,
  timezone: string,
): RunRules {
  return {
    daily_limit: dailyLimit,
    timezone,
    require_consent: requireConsent,
    ...(stopAfterFailures === undefined ? {} : { stop_after_failures: stopAfterFailures }),
    ...(window && { window: { text: window.text, zone: window.zone, when_closed: window.whenClosed } }),
    ...toTemplateNames(template),
  };
}

/**
 * Returns the rules that a `RunStarted` event recorded. `template`: today's, as the event has only the template's id.
 */
export function fromRunRules(recorded: RunRules, template: Template): RulesInForce {
  const { window } = recorded;
  return {
    dailyLimit: recorded.daily_limit,
    timezone: recorded.timezone,
    requireConsent: recorded.require_consent,
    stopAfterFailures: recorded.stop_after_failures,
    window: window && toSendWindow({ text: window.text, zone: window.zone, whenClosed: window.when_closed }),
    template,
  };
}
