import type { Folded } from "../../../events/event-types-and-codec.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import type { OtherRules } from "../../config/parse-what-if-rules.ts";
import { isBot } from "../../delivery/is-bot.ts";
import { createEventLog, STREAMS, type EventMetadata, type NewEvent } from "../../log/event-log.ts";
import { makeId } from "../../platform/clock-ids-and-timers.ts";
import { createTimeSlices } from "../../platform/work-in-time-slices.ts";
import type { EncryptedLog } from "../../privacy/encrypted-log.ts";
import type { HashesOf } from "../../privacy/suppression-hashes.ts";
import { parseTemplate } from "../../template/template.ts";
import type { RuleChanges, RulesInForce } from "../run-rules.ts";
import type { BotRule } from "./count-clicks.ts";
import { toReport, type WhatIfReport } from "./report.ts";
import { createWhatIf, WHAT_IF_TYPES, type WhatIfQuestion } from "./decide-recorded-runs-again.ts";

/** Maximum number of recipients in each list of a what-if answer: as many as fit a screen. */
const RECIPIENTS_SHOWN = 20;

export interface WhatIfDeps {
  readonly log: EncryptedLog;
  readonly hashesOf: HashesOf;
  /** Outreach settings as configured now; the what-if question changes some of them. */
  readonly today: OutreachConfig;
  /** Returns the present time, in ms since 1970. */
  readonly clock: () => number;
  readonly metadata: EventMetadata;
  /** Signal that ends a what-if calculation early. */
  readonly signal: AbortSignal;
  /** The calculation calls this now and then with the position that it has reached, of `to` positions. */
  readonly onProgress?: (position: number, to: number) => void;
  /** The calculation calls this when the what-if answer is ready, before it records the question in the log. */
  readonly beforeRecord?: () => Promise<void>;
}

/**
 * Answers what would have happened under other rules, and records that the question was asked. Folds the log in slices
 * of some milliseconds. If the signal aborts, returns undefined and records nothing.
 */
export async function answerWhatIf(rules: OtherRules, deps: WhatIfDeps): Promise<WhatIfReport | undefined> {
  const { log, hashesOf, today, clock, metadata, signal, onProgress, beforeRecord } = deps;
  const { position: to } = await log.head();
  const identities = { hashes: hashesOf, isForgotten: log.keyring.isForgotten };
  const whatIf = createWhatIf({ ...toQuestion(rules, today), identities });
  const slices = createTimeSlices();
  for await (const batch of readEvents(log, to, rules.bots !== undefined)) {
    for (const event of batch) {
      whatIf.take(event);
      if (slices.isOver()) await slices.next();
    }
    onProgress?.(batch.at(-1)?.position ?? to, to);
    if (signal.aborted) return undefined;
  }
  const found = await whatIf.finish(clock());
  if (signal.aborted) return undefined;
  await beforeRecord?.();
  const asked: NewEvent = { type: "WhatIfAsked", data: { rules: [...rules.names], position: to } };
  const { last } = await createEventLog(log, makeId).append(STREAMS.projections, [asked], metadata);
  return toReport(rules, found, { position: to, recordedAt: last });
}

/**
 * Reads the events of the log up to a position. `opensClicks` also decrypts the user agents of clicks, for a rule that
 * needs them.
 */
async function* readEvents(store: EncryptedLog, to: number, opensClicks: boolean): AsyncIterable<readonly Folded[]> {
  const query = { types: WHAT_IF_TYPES, to, alongLog: true };
  if (!opensClicks) return yield* store.readFolded(query);
  for await (const event of store.read(query)) yield [event];
}

function toQuestion({ names, outreach, bots }: OtherRules, today: OutreachConfig): Omit<WhatIfQuestion, "identities"> {
  const other = toRulesInForce(outreach);
  const rulesOf: Partial<Record<(typeof names)[number], keyof RulesInForce>> = {
    DAILY_LIMIT: "dailyLimit",
    QUOTA_TIMEZONE: "timezone",
    REQUIRE_CONSENT: "requireConsent",
    STOP_AFTER_FAILURES: "stopAfterFailures",
    MESSAGE_TEMPLATE: "template",
    SEND_WINDOW: "window",
    SEND_WINDOW_ZONE: "window",
    SEND_WINDOW_CLOSED: "window",
  };
  const changes: RuleChanges = Object.fromEntries(
    names.flatMap((name) => {
      const rule = rulesOf[name];
      return rule === undefined ? [] : [[rule, other[rule]]];
    }),
  );
  return {
    changes,
    isBot: bots && createBotRule(bots),
    stopWords: compareWords(today.stopWords, outreach.stopWords),
    today: toRulesInForce(today),
    sources: today.sources,
    runMaxMs: today.runMaxMinutes * 60_000,
    limit: RECIPIENTS_SHOWN,
  };
}

/**
 * Stands for the beginning of links if no template is configured. A what-if sends no message, so no recipient sees such
 * a link.
 */
const ANY_BASE = "https://link.example";

function toRulesInForce(config: OutreachConfig): RulesInForce {
  const { dailyLimit, timezone, requireConsent, stopAfterFailures, window, gapDays, template } = config;
  const limits = { dailyLimit, timezone, requireConsent, stopAfterFailures, window, gapDays };
  return { ...limits, template: template ?? parseTemplate("-", ANY_BASE, undefined, ANY_BASE) };
}

function createBotRule({ lists, words }: NonNullable<OtherRules["bots"]>): BotRule {
  return (userAgent) => {
    if (!lists && words.length === 0) return false;
    if (userAgent === null) return undefined;
    const text = userAgent?.toLowerCase() ?? "";
    return (lists && isBot(userAgent)) || words.some((word) => text.includes(word));
  };
}

/**
 * Compares today's stop words with those of the question. Undefined if they are the same; `keepsAll` if the question
 * only adds some.
 */
function compareWords(today: readonly string[], other: readonly string[]): WhatIfQuestion["stopWords"] {
  const keepsAll = today.every((word) => other.includes(word));
  return keepsAll && other.length === today.length ? undefined : { keepsAll };
}
