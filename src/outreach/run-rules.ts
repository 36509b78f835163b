import { DEFAULT_CAMPAIGN } from "../../events/campaign.ts";
import type { RunRules } from "../../events/outreach.ts";
import type { Campaigns } from "../../projections/campaigns.ts";
import { toSendWindow } from "../config/send-window.ts";
import type { Config } from "../config/config.ts";
import type { Keyring } from "../privacy/keyring.ts";
import type { FindLinkKeys } from "../privacy/person-keys.ts";
import type { HashesOf } from "../privacy/suppression-hashes.ts";
import { parseTemplate, toTemplateNames, type Template } from "../template/template.ts";
import { readCampaignText } from "./campaigns/parse-campaign-text.ts";
import type { CampaignConfig } from "./campaigns/check-campaign.ts";
import type { OutreachRules } from "./decide.ts";

/** Rules of a run that a what-if question may replace by other ones. */
export interface RulesInForce {
  readonly dailyLimit: OutreachRules["dailyLimit"];
  readonly requireConsent: OutreachRules["requireConsent"];
  readonly stopAfterFailures: OutreachRules["stopAfterFailures"];
  readonly window: OutreachRules["window"];
  readonly template: OutreachRules["template"];
  readonly gapDays: OutreachRules["gapDays"];
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

/** Returns the configured rules. If no template is configured, they get a placeholder that no run sends. */
export function toOutreachRules({
  config,
  hashesOf,
  findLinkKeys,
  keyring: { isForgotten },
}: RuleParts): OutreachRules {
  const {
    requireConsent,
    dailyLimit,
    stopAfterFailures,
    window,
    gapDays,
    template = emptyTemplate(config),
  } = config.outreach;
  const limits = { requireConsent, dailyLimit, stopAfterFailures, window, gapDays };
  return { template, ...limits, hashes: hashesOf, findLinkKeys, isForgotten };
}

/**
 * Returns a placeholder for a template that is not configured. It holds the base URLs of short links and of opt-out
 * pages, which campaigns take from it.
 */
export function emptyTemplate({ links, outreach }: CampaignConfig): Template {
  return parseTemplate("-", links.base, undefined, outreach.optOutBase);
}

/**
 * Returns the rules for the runs of a campaign: those of `default`, with the campaign's own topic and message. If the
 * settings cannot send its text, the rules say why, and no run starts.
 */
export function rulesForCampaign<Rules extends { readonly template: Template }>(
  rules: Rules,
  { named }: Campaigns,
  campaign: string | undefined,
): Rules & {
  readonly campaign?: string;
  readonly topic?: string | undefined;
  readonly textFault?: string | undefined;
} {
  if (campaign === undefined || campaign === DEFAULT_CAMPAIGN) return rules;
  const definition = named.get(campaign);
  if (definition === undefined) return { ...rules, campaign };
  return { ...rules, campaign, topic: definition.topic, ...readCampaignText(definition, rules.template) };
}

/** Returns the rules as the start of a run records them. */
export function toRunRules(
  { dailyLimit, requireConsent, stopAfterFailures, window, template, campaign, gapDays }: OutreachRules,
  timezone: string,
): RunRules {
  return {
    daily_limit: dailyLimit,
    timezone,
    require_consent: requireConsent,
    ...(campaign === undefined ? {} : { gap_days: gapDays }),
    ...(stopAfterFailures === undefined ? {} : { stop_after_failures: stopAfterFailures }),
    ...(window && { window: { text: window.text, zone: window.zone, when_closed: window.whenClosed } }),
    ...toTemplateNames(template),
  };
}

/**
 * Returns the rules that a `RunStarted` event recorded. The event holds only the template's id, so the text is today's,
 * and so is the gap if it holds none.
 */
export function fromRunRules(recorded: RunRules, { template, gapDays }: RulesInForce): RulesInForce {
  const { window } = recorded;
  return {
    dailyLimit: recorded.daily_limit,
    timezone: recorded.timezone,
    requireConsent: recorded.require_consent,
    stopAfterFailures: recorded.stop_after_failures,
    window: window && toSendWindow({ text: window.text, zone: window.zone, whenClosed: window.when_closed }),
    gapDays: recorded.gap_days ?? gapDays,
    template,
  };
}
