import { ServiceError, usageError } from "../platform/service-error.ts";
import { commaList, findClosest, quoteValue, type RawEnvironment } from "./environment.ts";
import type { OutreachConfig } from "./outreach.ts";

/** Settings that are rules of outreach, and that a what-if question may set to other values. */
const SETTINGS = [
  "DAILY_LIMIT",
  "QUOTA_TIMEZONE",
  "REQUIRE_CONSENT",
  "STOP_AFTER_FAILURES",
  "STOP_WORDS",
  "MESSAGE_TEMPLATE",
  "SEND_WINDOW",
  "SEND_WINDOW_ZONE",
  "SEND_WINDOW_CLOSED",
] as const;

/** Rules of a what-if question for recognising bots. No setting has these names. */
const BOT_RULES = ["BOT_RULE", "BOT_USER_AGENTS"] as const;

export const WHAT_IF_RULES = [...SETTINGS, ...BOT_RULES] as const;
export type WhatIfRule = (typeof WHAT_IF_RULES)[number];

/** The checked rules of a what-if question. */
export interface OtherRules {
  /**
   * Names of the rules for which the what-if question gives other values, in the order of {@link WHAT_IF_RULES}. A
   * what-if question asks what other rules would have done with the log.
   */
  readonly names: readonly WhatIfRule[];
  /**
   * Today's outreach settings, except that values in the what-if question replace those of the settings that it names.
   */
  readonly outreach: OutreachConfig;
  /**
   * How the what-if question recognises bots: by the service's lists of user agents if `lists` is true, and by each of
   * the lower-case `words` in a user agent. Undefined: each click keeps the judgement that was recorded with it.
   */
  readonly bots: { readonly lists: boolean; readonly words: readonly string[] } | undefined;
}

/**
 * Function that returns the outreach settings with other values for some of them. Throws a ServiceError
 * (configuration).
 */
export type OutreachWith = (changes: RawEnvironment) => OutreachConfig;

/**
 * Checks the rules that a what-if question applies to past runs: names of settings with values; null unsets one.
 * `source` is how errors name them. Throws a ServiceError (usage) that names each fault.
 */
export function parseOtherRules(
  given: Readonly<Record<string, unknown>>,
  source: string,
  outreachWith: OutreachWith,
): OtherRules {
  const faults = Object.entries(given).flatMap(([name, value]) => describeFault(name, value) ?? []);
  if (faults.length > 0) throw usageError(`${source}: ${faults.join("; ")}`);
  const values = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, toSetting(value)]));
  const names = WHAT_IF_RULES.filter((name) => Object.hasOwn(given, name));
  return { names, outreach: readSettings(values, source, outreachWith), bots: readBots(names, values, source) };
}

/** Parses the JSON object of a what-if question. Throws a ServiceError (usage). */
export function parseRules(text: string, source: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw usageError(`${source}: not JSON. Write an object such as {"DAILY_LIMIT": 20}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw usageError(`${source}: not an object. Write one such as {"DAILY_LIMIT": 20}`);
}

function describeFault(name: string, value: unknown): string | undefined {
  if (!(WHAT_IF_RULES as readonly string[]).includes(name)) {
    const meant = findClosest(name, WHAT_IF_RULES);
    const hint = meant === undefined ? `rules are ${WHAT_IF_RULES.join(", ")}` : `did you mean ${meant}?`;
    return `${quoteValue(name)} is no rule: ${hint}`;
  }
  const isText = value === null || ["string", "number", "boolean"].includes(typeof value);
  return isText ? undefined : `${name}: expected a text, a number, true, false or null`;
}

/** Converts a value of a what-if question to a setting's text. Undefined if the question unsets the setting. */
function toSetting(value: unknown): string | undefined {
  if (value === null) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Reads each value of a what-if question by the parser of its setting. The other settings were checked before, so a
 * fault must come from the question.
 */
function readSettings(values: RawEnvironment, source: string, outreachWith: OutreachWith): OutreachConfig {
  const named = Object.fromEntries(SETTINGS.filter((name) => name in values).map((name) => [name, values[name]]));
  const file = "MESSAGE_TEMPLATE" in named ? { MESSAGE_TEMPLATE_FILE: undefined } : {};
  try {
    return outreachWith({ ...file, ...named });
  } catch (fault) {
    if (!(fault instanceof ServiceError) || fault.kind !== "configuration") throw fault;
    throw usageError(`${source}: ${fault.message.replaceAll("\n", "; ")}`);
  }
}

function readBots(names: readonly WhatIfRule[], values: RawEnvironment, source: string): OtherRules["bots"] {
  if (!BOT_RULES.some((name) => names.includes(name))) return undefined;
  const { BOT_RULE: rule = "lists", BOT_USER_AGENTS: words } = values;
  if (rule !== "lists" && rule !== "none")
    throw usageError(`${source}: BOT_RULE: ${quoteValue(rule)} is not accepted; wanted: lists or none`);
  return { lists: rule === "lists", words: commaList(words).map((word) => word.toLowerCase()) };
}
