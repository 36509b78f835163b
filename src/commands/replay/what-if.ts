import { readFileSync } from "node:fs";
import type { Folded, LogStore } from "../../../events/catalog.ts";
import { isBot } from "../../delivery/bots.ts";
import { formatRecipient, plain } from "../../history/words/phrases.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../log/event-log.ts";
import { parseOtherRules, type OtherRules } from "../../config/what-if.ts";
import type { OutreachConfig } from "../../config/outreach.ts";
import type { BotRule } from "../../outreach/what-if/clicks.ts";
import type { RuleChanges, RulesInForce } from "../../outreach/run-rules.ts";
import type { ChangedRecipient, ComparedCount, DayCounts } from "../../outreach/what-if/tally.ts";
import { createWhatIf, WHAT_IF_TYPES, type WhatIf, type WhatIfQuestion } from "../../outreach/what-if/what-if.ts";
import { makeId } from "../../platform/clock.ts";
import { createSuppressionHashes } from "../../recipients/suppress.ts";
import { parseTemplate } from "../../template/template.ts";
import { readConfig } from "../shared/command.ts";
import { COMMAND_METADATA, openExistingLog, recordRead } from "../shared/log-session.ts";
import { withProgress } from "../shared/progress.ts";
import { withPath } from "../shared/system-fault.ts";
import { table } from "../shared/table.ts";
import { answer, EXIT, type Terminal } from "../shared/terminal.ts";

/** Recipients named in each list: they fit a screen. */
const RECIPIENTS_SHOWN = 20;

/** Answers what other rules would have done, and records that it was asked. Answers the exit code. */
export async function askWhatIf(terminal: Terminal, file: string, json: boolean | undefined): Promise<number> {
  const readFile = (path: string): string => readFileSync(path, "utf8");
  const rules = parseOtherRules(
    withPath(file, () => readFile(file)),
    file,
    terminal.env,
    readFile,
  );
  const config = readConfig(terminal);
  await using store = await openExistingLog(terminal);
  const { position: to } = await store.head();
  const whatIf = createWhatIf({
    ...toQuestion(rules, config.outreach),
    identities: {
      hashes: createSuppressionHashes(await store.vault.stableKey("suppression")),
      isForgotten: store.keyring.isForgotten,
    },
  });
  await withProgress(terminal, "what if", to, async (onProgress) => {
    for await (const batch of readEvents(store, to, rules.bots !== undefined)) {
      for (const event of batch) whatIf.take(event);
      onProgress(batch.at(-1)?.position ?? to);
      if (terminal.signal.aborted) return;
    }
  });
  if (terminal.signal.aborted) {
    terminal.err("interrupted; nothing was recorded\n");
    return EXIT.temporary;
  }
  const found = whatIf.finish(store.logClock.now());
  await recordRead(terminal, store, { resource: "preview" });
  const asked: NewEvent = { type: "WhatIfAsked", data: { rules: [...rules.names], position: to } };
  const metadata = terminal.caller === undefined ? COMMAND_METADATA : { caller: terminal.caller };
  await createEventLog(store, makeId).append(STREAMS.projections, [asked], metadata);
  answer(terminal, json, toJson(rules, found, to), toText(rules, found, to));
  return EXIT.ok;
}

/** The user agents of clicks are encrypted, and opened only for a rule that asks for them. */
async function* readEvents(store: LogStore, to: number, opensClicks: boolean): AsyncIterable<readonly Folded[]> {
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

function toRulesInForce({
  dailyLimit,
  timezone,
  requireConsent,
  stopAfterFailures,
  window,
  template = parseTemplate("-"),
}: OutreachConfig): RulesInForce {
  return { dailyLimit, timezone, requireConsent, stopAfterFailures, window, template };
}

function createBotRule({ lists, words }: NonNullable<OtherRules["bots"]>): BotRule {
  return (userAgent) => {
    if (!lists && words.length === 0) return false;
    if (userAgent === null) return undefined;
    const text = userAgent?.toLowerCase() ?? "";
    return (lists && isBot(userAgent)) || words.some((word) => text.includes(word));
  };
}

/** Undefined: both are the same. */
function compareWords(today: readonly string[], other: readonly string[]): WhatIfQuestion["stopWords"] {
  const keepsAll = today.every((word) => other.includes(word));
  return keepsAll && other.length === today.length ? undefined : { keepsAll };
}

function toJson({ names }: OtherRules, found: WhatIf, position: number): object {
  const { days, total, recipients, unknown, runs, unexplained } = found;
  return {
    rules: names,
    as_of: { position },
    runs,
    total: countsAsJson(total),
    days: [...days].map(([day, counts]) => ({ day, ...countsAsJson(counts) })),
    recipients,
    unknown: { sends: total.sent.unknown, clicks: total.clicks.unknown, ...unknown },
    unexplained,
  };
}

function countsAsJson({ messages, sent, skipped, clicks }: DayCounts): object {
  return {
    messages: withDifference(messages),
    sent: withDifference(sent),
    skipped: Object.fromEntries([...skipped].map(([reason, counts]) => [reason, withDifference(counts)])),
    clicks: withDifference(clicks),
  };
}

function withDifference<Counts extends ComparedCount>(counts: Counts): Counts & { readonly difference: number } {
  return { ...counts, difference: counts.would - counts.was };
}

const HEAD = ["day", "what", "was", "would be", "difference", "unknown"] as const;

function toText({ names }: OtherRules, found: WhatIf, position: number): string {
  const { days, total, runs, unexplained } = found;
  const asked = names.length === 0 ? "the rules of then" : names.join(", ");
  const rows = [...[...days].flatMap(([day, counts]) => toRows(day, counts)), ...toRows("total", total)];
  const lists = (["lost", "gained", "moved", "skips"] as const).map((kind) => listAsText(found, kind));
  return [
    days.size === 0 ? `under ${asked} nothing differs\n` : `under ${asked}:\n`,
    table(HEAD, rows),
    ...lists,
    ...describeUnknown(found).map((line) => `${line}\n`),
    ...(runs.unrecorded === 0
      ? []
      : [`${runs.unrecorded} runs did not record their rules: today's settings are taken for theirs\n`]),
    ...(unexplained === 0
      ? []
      : [`${unexplained} messages do not follow from the rules of then: they stay as they were\n`]),
    `(${runs.was} runs were made, ${runs.would} would be; up to position ${position})\n`,
  ].join("");
}

function toRows(
  day: string,
  { messages, sent, skipped, clicks }: DayCounts,
): readonly (readonly (string | number)[])[] {
  const row = (what: string, { was, would }: ComparedCount, unknown: number | "" = "") => {
    const difference = would - was;
    return [day, what, was, would, difference > 0 ? `+${difference}` : difference, unknown];
  };
  return [
    row("messages", messages),
    row("sent", sent, sent.unknown),
    ...[...skipped].map(([reason, counts]) => row(`skipped: ${plain(reason)}`, counts)),
    row("clicks", clicks, clicks.unknown),
  ];
}

const LISTS = {
  lost: "had a message and would have none",
  gained: "had no message and would have one",
  moved: "would have their message on another day",
  skips: "would be skipped for other reasons",
} as const;

function listAsText({ recipients }: WhatIf, kind: keyof typeof LISTS): string {
  const { count, shown } = recipients[kind];
  if (count === 0) return "";
  const rows = shown.map(({ recipient, was, would }: ChangedRecipient) => {
    return [formatRecipient(recipient), outcomeAsText(was), outcomeAsText(would)];
  });
  const more = count > shown.length ? `and ${count - shown.length} more\n` : "";
  return `\n${count} ${LISTS[kind]}\n${table(["recipient", "was", "would be"], rows)}${more}`;
}

function outcomeAsText({ day, skipped }: ChangedRecipient["was"]): string {
  const skips = skipped.length === 0 ? [] : [`skipped: ${skipped.map(plain).join(", ")}`];
  return [...(day === null ? [] : [`message on ${day}`]), ...skips].join("; ") || "nothing";
}

/** What the answer leaves open, each in a sentence. */
function describeUnknown({ total, unknown }: WhatIf): readonly string[] {
  const { reactions, opt_outs, messages_read, unread_sources } = unknown;
  const sentences: readonly (readonly [number, string])[] = [
    [
      total.sent.unknown,
      "messages never left as these rules have them: no log knows whether X takes them, nor replies and clicks",
    ],
    [
      total.clicks.unknown,
      "clicks count for neither side: their message would not have left, or their user agent is not known",
    ],
    [reactions, "replies or opt-outs answer messages that would not have left: they are left out"],
    [opt_outs, "opt-outs were read by other stop words: they stay"],
    [messages_read, "messages were read whose texts are not kept: other stop words may be in them"],
    [unread_sources, "runs would have gone on to recipients that only X knows: they are not counted"],
  ];
  const known = sentences.filter(([count]) => count > 0).map(([count, sentence]) => `unknown: ${count} ${sentence}`);
  return known.length === 0 ? known : ["", ...known];
}
