import type { RunRules } from "../../events/outreach.ts";
import { toSendWindow } from "../config/send-window.ts";
import type { Config } from "../config/config.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { FindLinkKeys } from "../recipients/record-consent.ts";
import type { HashesOf } from "../recipients/suppress.ts";
import { toTemplateNames, type Template } from "../template/template.ts";
import type { OutreachRules } from "./decide.ts";

/** The rules that a what-if question may change. */
export interface RulesInForce extends Pick<
  OutreachRules,
  "dailyLimit" | "requireConsent" | "stopAfterFailures" | "window" | "template"
> {
  readonly timezone: string;
}

/** The changes of a question. An absent member stays as it was at that time; undefined is a value of the rule. */
export type RuleChanges = Partial<RulesInForce>;

/** The parts from which the rules are made, except the template. */
export interface RuleParts {
  readonly config: Pick<Config, "outreach">;
  readonly hashesOf: HashesOf;
  readonly findLinkKeys: FindLinkKeys;
  readonly keyring: Pick<Keyring, "isForgotten">;
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

/** Returns the rules as the start of a run records them. */
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

/** Returns the rules that an event recorded. It holds only the template's id, so the text is today's. */
export function fromRunRules(recorded: RunRules, { template }: Pick<RulesInForce, "template">): RulesInForce {
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
