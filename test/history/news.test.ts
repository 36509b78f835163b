// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { DataOf, EventType, Folded } from "../../events/event-types-and-codec.ts";
import { news } from "../../projections/news.ts";
import { fold } from "../../projections/projection.ts";
import { suspected } from "../../projections/clicks-suspected-as-networks-own.ts";
import { DAY_MS, HOUR_MS } from "../../projections/parse-log-times.ts";
import { toNews, type NewsLine } from "../../src/history/news.ts";
import { formatSentence } from "../../src/history/sentences/sentence-parts.ts";
import { countCases } from "../harness/case-count.ts";

const DAY = Date.parse("2026-11-26T00:00:00.000Z");
const SPAN = { start: DAY, end: DAY + DAY_MS };
const MINUTE_MS = 60_000;

type Timed = readonly [at: number, type: EventType, data: object];

const recipient = (name: string) => ({ id: name, username: name });

/** Returns the events in the order of their times, with positions from 1 on. */
function logOf(events: readonly Timed[]): readonly Folded[] {
  return events
    .toSorted(([one], [other]) => one - other)
    .map(([at, type, data], index) => {
      const time = new Date(at).toISOString();
      return { type, data, time, position: index + 1, version: 1 } as unknown as Folded;
    });
}

function linesOf(events: readonly Timed[], day = SPAN): readonly NewsLine[] {
  const log = logOf(events);
  const states = { news: fold(news, news.initial(), log), suspected: fold(suspected, suspected.initial(), log) };
  return toNews(states, day);
}

function wordsOf({ words, positions }: NewsLine): string {
  if (words === undefined) return `event ${positions[0]}`;
  return `${formatSentence(words.lead)}${formatSentence(words.rest)}${words.aside === "" ? "" : ` · ${words.aside}`}`;
}

const click = (at: number, code: string, bot = false): Timed => [
  at,
  "LinkClicked",
  { event: "click", domain: "go.example", short_code: code, original_url: "https://shop.example/", bot, channels: [] },
];

/** Creates the events of a run, a minute apart: `sent` messages whose links X fetches, and others by their outcome. */
function runOf(id: string, start: number, { sent = 0, skipped = 0, failed = 0, in_doubt = 0 }): readonly Timed[] {
  const events: Timed[] = [
    [start, "RunStarted", { run_id: id, dry_run: false, rules: { template_name: "Winter guide" } }],
  ];
  let at = start;
  const message = (kind: EventType, count: number, more: object): void => {
    for (let number = 0; number < count; number++) {
      at += MINUTE_MS;
      const attempt = { run_id: id, attempt_id: `${id}-${at}`, recipient: recipient(`p${number}`) };
      if (kind !== "DirectMessageSkipped") {
        events.push([at, "DirectMessageAttempted", { ...attempt, variant: "A", links: ["go.example/winter"] }]);
      }
      events.push([at + 1, kind, { ...attempt, ...more }]);
      // The network fetches the link of the message twice, as a bot and as a browser.
      if (kind === "DirectMessageSent") events.push(click(at + 500, "winter", true), click(at + 900, "winter"));
    }
  };
  message("DirectMessageSent", sent, { settled_by: "answer" });
  message("DirectMessageSkipped", skipped, { reason: "no_consent" });
  message("DirectMessageFailed", failed, { reason: "rejected", frees_quota: true });
  message("DirectMessageInDoubt", in_doubt, { detail: "" });
  events.push([at + MINUTE_MS, "RunFinished", { run_id: id, reason: "completed", sent, skipped, failed, in_doubt }]);
  return events;
}

const abandoned = (
  at: number,
  channel: string,
  sources: DataOf<"DispatchAbandoned">["requests"][0]["sources"],
  detail: string,
): Timed => [
  at,
  "DispatchAbandoned",
  {
    channel,
    lane: "clicks",
    low_watermark: 1,
    requests: [{ sources, attempt: 8, status: 429, detail, refused: false }],
  },
];

test("a run is one line, although X fetches each link between its messages", () => {
  const lines = linesOf(runOf("r1", DAY + 8 * HOUR_MS, { sent: 14, skipped: 4, failed: 1, in_doubt: 1 }));
  expect(lines.map(wordsOf)).toEqual([
    "run r1, Winter guide: 14 sent, 4 skipped, 1 failed, 1 in doubt",
    "14 clicks by bots on go.example/winter · 14 probably by X itself",
  ]);
  expect(lines[0]).toMatchObject({ from: DAY + 8 * HOUR_MS, to: DAY + 8 * HOUR_MS + 21 * MINUTE_MS, count: 20 });
});

test("a run that passes midnight is one line of the day on which it ended", () => {
  const events = runOf("r1", DAY - 5 * MINUTE_MS, { sent: 20 });
  const before = linesOf(events, { start: DAY - DAY_MS, end: DAY });
  expect(before.filter(({ runId }) => runId !== undefined)).toEqual([]);
  expect(linesOf(events).filter(({ runId }) => runId === "r1")).toHaveLength(1);
});

test("36 runs and 3,000 clicks of a day are at most 15 lines", () => {
  const runs = Array.from({ length: 36 }, (_, at) =>
    runOf(`r${at}`, DAY + at * 39 * MINUTE_MS, { sent: 14, skipped: 4, failed: at % 5 }),
  ).flat();
  const clicks = Array.from({ length: 3_000 }, (_, at) =>
    click(DAY + Math.floor((at * DAY_MS) / 3_000), `link${at % 12}`, at % 3 === 0),
  );
  const replies = Array.from({ length: 40 }, (_, at): Timed => [
    DAY + at * 30 * MINUTE_MS,
    "DirectMessageReceived",
    { recipient: recipient(`r${at}`), message_id: `${at}`, received_at: "" },
  ]);
  const lines = linesOf([
    ...runs,
    ...clicks,
    ...replies,
    abandoned(DAY + HOUR_MS, "chat", [[1, 25]], "Slack answered 429 rate_limited"),
  ]);
  expect(lines.length).toBeLessThanOrEqual(15);
  expect(lines.map(wordsOf)).toContain("Chat did not take 25 dispatches: 429 from Slack, rate_limited");
  expect(lines.map(wordsOf).some((words) => words.startsWith("36 runs: 504 sent, 144 skipped, "))).toBe(true);
});

test("two runs of a day stay two lines that say how each ended, however many lines the day has", () => {
  const decisions = Array.from({ length: 20 }, (_, at): Timed => [
    DAY + at * 16 * MINUTE_MS,
    "RecipientSuppressed",
    { recipient: recipient("ada"), reason: "by_hand" },
  ]);
  const runs = ["r1", "r2"].flatMap((id, at) => runOf(id, DAY + (10 + at) * HOUR_MS, { sent: 3 }));
  expect(linesOf([...decisions, ...runs]).flatMap(({ runId }) => runId ?? [])).toEqual(["r2", "r1"]);
});

test("many clicks by bots on one link are a line with a warning, apart from the other clicks", () => {
  const burst = Array.from({ length: 1_204 }, (_, at) => click(DAY + 3 * HOUR_MS + at * 440, "pricing", true));
  const usual = Array.from({ length: 20 }, (_, at) => click(DAY + at * HOUR_MS, "pricing", at % 2 === 0));
  const lines = linesOf([...burst, ...usual]);
  const words = lines.map(wordsOf);
  expect(words).toContain("1,204 clicks by bots on go.example/pricing within 9 minutes, not counted as people");
  expect(lines.find(({ severity }) => severity === "warning")?.count).toBe(1_204);
});

test("a line with a severity or a decision never merges with another", () => {
  const decisions = Array.from({ length: 30 }, (_, at): Timed => [
    DAY + at * 16 * MINUTE_MS,
    "RecipientSuppressed",
    { recipient: recipient("ada"), reason: "by_hand" },
  ]);
  const optOuts = decisions.map(([at, type, data]): Timed => [at + 1, type, { ...data, reason: "opt_out" }]);
  const lines = linesOf([...decisions, ...optOuts]);
  expect(lines.filter(({ words }) => words === undefined)).toHaveLength(30);
  expect(lines.map(wordsOf)).toContain("30 people opted out. No run will message them again");
});

test("an operator's word that a message arrived is a line of its own, beside its run", () => {
  const run = runOf("r1", DAY + 8 * HOUR_MS, { sent: 2, in_doubt: 1 });
  const [, , doubt] = run.find(([, type]) => type === "DirectMessageInDoubt")!;
  const lines = linesOf([...run, [DAY + 10 * HOUR_MS, "DirectMessageSent", { ...doubt, settled_by: "operator" }]]);
  expect(lines.map(({ runId, positions }) => [runId, positions])).toContainEqual([undefined, [run.length + 1]]);
  expect(lines.map(wordsOf)).toContain("run r1, Winter guide: 3 sent");
});

test("the conversions of an hour are one line, and dispatches that WhatsApp lost are one with a severity", () => {
  const sale = { name: "Purchase", channels: [] };
  const lost = { event_id: "e", source: 1, channel: "messaging", detail: "131042" };
  const lines = linesOf([
    ...[0, 10, 50].map((minute) => [DAY + minute * MINUTE_MS, "ConversionRecorded", sale] as const),
    [DAY + 2 * HOUR_MS, "DispatchLost", lost],
    [DAY + 2 * HOUR_MS + MINUTE_MS, "DispatchLost", lost],
    [DAY + 4 * HOUR_MS, "ConversionReversed", sale],
  ]);
  expect(lines.map((line) => [wordsOf(line), line.severity])).toEqual([
    ["event 6", undefined],
    ["2 dispatches accepted and then lost by WhatsApp", "error"],
    ["3 conversions recorded", undefined],
  ]);
});

test("a channel's failures of one cause are one line from the first to the recovery", () => {
  const at = DAY + 3 * HOUR_MS;
  const lines = linesOf([
    [at, "CircuitOpened", { channel: "chat", failures: 5, until: "" }],
    abandoned(at + 30 * MINUTE_MS, "chat", [1, [3, 24]], "Slack answered 429 rate_limited"),
    abandoned(at + 40 * MINUTE_MS, "chat", [30, 31], "Slack answered 429 rate_limited"),
    abandoned(at + 40 * MINUTE_MS, "ads", [30], "Meta answered 400"),
    [at + 60 * MINUTE_MS, "CircuitClosed", { channel: "chat" }],
  ]);
  expect(lines.map((line) => [wordsOf(line), line.severity, (line.to - line.from) / MINUTE_MS])).toEqual([
    ["Chat did not take 25 dispatches: 429 from Slack, rate_limited", "error", 60],
    ["Ads did not take 1 dispatch: 400 from Meta", "error", 0],
  ]);
});

test("a webhook that was unsubscribed while it paused is shown neither as paused for ever nor as working again", () => {
  const lines = linesOf([
    [DAY, "CircuitOpened", { channel: "webhook-crm", failures: 5, until: "" }],
    [DAY + HOUR_MS, "WebhookUnsubscribed", { channel: "webhook-crm" }],
  ]);
  const [paused] = lines.filter(({ type }) => type === "ChannelSuspended");
  expect(wordsOf(paused!)).toBe("Webhook crm paused 1 time after 5 failures in a row, and was unsubscribed");
  expect(paused!.to).toBe(DAY + HOUR_MS);
});

describe("each number of the news is that of the log", () => {
  const anyTime = fc.integer({ min: 0, max: DAY_MS - 1 }).map((ms) => DAY + ms);
  const anyClick = fc
    .tuple(anyTime, fc.constantFrom("a", "b", "c", "winter"), fc.boolean())
    .map(([at, code, bot]) => [click(at, code, bot)]);
  const anyReply = anyTime.map((at): readonly Timed[] => [
    [at, "DirectMessageReceived", { recipient: recipient("ada"), message_id: "m", received_at: "" }],
  ]);
  const counts = fc.record({
    sent: fc.nat(6),
    skipped: fc.nat(3),
    failed: fc.nat(3),
    in_doubt: fc.nat(2),
  });
  const anyRun = fc
    .tuple(fc.uuid(), fc.integer({ min: 0, max: DAY_MS - HOUR_MS }), counts)
    .map(([id, ms, counted]) => runOf(id, DAY + ms, counted));
  const anyLoss = fc
    .tuple(anyTime, fc.constantFrom("chat", "ads"), fc.integer({ min: 1, max: 30 }))
    .map(([at, channel, last]) => [abandoned(at, channel, [[1, last + 1]], `Slack answered 429 ${last % 2}`)]);
  const anyDay = fc.array(fc.oneof({ weight: 6, arbitrary: anyClick }, anyReply, anyRun, anyLoss), {
    maxLength: 120,
    size: "max",
  });

  test("for clicks, messages, replies and dead letters of any day", () => {
    fc.assert(
      fc.property(anyDay, (parts) => {
        const events = parts.flat();
        const log = logOf(events);
        const lines = linesOf(events);
        const count = (type: EventType, isWanted: (data: Record<string, unknown>) => boolean = () => true): number =>
          log.filter((event) => event.type === type && isWanted(event.data as Record<string, unknown>)).length;
        const links = lines.flatMap((line) => line.links);
        const bursts = lines.filter(({ key }) => key.startsWith("burst"));
        const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
        expect(sum(links.map(({ clicks }) => clicks))).toBe(count("LinkClicked", ({ bot }) => bot === false));
        expect(sum([...links.map(({ bots }) => bots), ...bursts.map((line) => line.count)])).toBe(
          count("LinkClicked", ({ bot }) => bot === true),
        );
        expect(sum(links.map((link) => link.suspected))).toBe(fold(suspected, suspected.initial(), log).all.suspected);
        const numbersIn = (words: RegExp): number =>
          sum(
            lines.flatMap((line) =>
              [...wordsOf(line).matchAll(words)].map(([, number]) => Number(number?.replace(",", ""))),
            ),
          );
        expect(numbersIn(/([\d,]+) sent/g)).toBe(count("DirectMessageSent"));
        expect(numbersIn(/([\d,]+) skipped/g)).toBe(count("DirectMessageSkipped"));
        expect(numbersIn(/([\d,]+) failed/g)).toBe(count("DirectMessageFailed"));
        expect(numbersIn(/([\d,]+) in doubt/g)).toBe(count("DirectMessageInDoubt"));
        expect(sum(lines.filter(({ type }) => type === "DirectMessageReceived").map((line) => line.count))).toBe(
          count("DirectMessageReceived"),
        );
        const dead = log.flatMap(({ type, data }) => (type === "DispatchAbandoned" ? data.requests : []));
        expect(numbersIn(/did not take ([\d,]+)/g)).toBe(
          sum(dead.map(({ sources: [range] }) => (typeof range === "object" ? range[1] - range[0] + 1 : 1))),
        );
        const times = lines.map(({ to }) => to);
        expect(times).toEqual(times.toSorted((one, other) => other - one));
      }),
      { numRuns: countCases(60) },
    );
  });
});

test("several dry runs in one line count as such, and their messages as none, because nothing was sent", () => {
  const dry = Array.from({ length: 13 }, (_, at): readonly Timed[] => [
    [DAY + at * HOUR_MS, "RunStarted", { run_id: `d${at}`, dry_run: true }],
    [
      DAY + at * HOUR_MS + MINUTE_MS,
      "DryRunFinished",
      { run_id: `d${at}`, reason: "completed", would_send: 5, would_skip: 2 },
    ],
  ]).flat();
  expect(linesOf(dry).map(wordsOf)).toEqual(["13 dry runs"]);
});
