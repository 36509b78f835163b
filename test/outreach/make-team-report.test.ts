// These tests run parts of the service inside the test process.
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import type { ReportFigures } from "../../src/history/sentences/word-run-report-for-chat.ts";
import { REPORT_CHARACTERS_MAX, wordReport } from "../../src/history/sentences/word-run-report-for-chat.ts";
import { createRunReports } from "../../src/outreach/report/make-team-report.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { openApp, post, problemIn, TOKEN } from "../harness/in-process/app.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { openOutreach } from "../harness/in-process/simulated-outreach-processes.ts";

const CHAT = { CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T0/B0/secret", PUBLIC_URL: "http://localhost" };
const NOW = Date.parse("2026-03-01T08:00:00.000Z");
const HOUR_MS = 3_600_000;
const RUN = "01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11";

const usage = { sends: 2, users: 0, followers: 0, posts: 0, messages: 0, usd: 0.03 };
const counts = { sent: 2, skipped: 3, failed: 0, in_doubt: 1 };
const ada = { id: "10", username: "ada" };
const skipped = (reason: "no_consent" | "self"): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id: RUN, recipient: ada, reason },
});
const sent = (id: string): readonly NewEvent[] => {
  const attempt = { attempt_id: id, run_id: RUN, recipient: { id, username: `person_${id}` } };
  return [
    { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant: "A", day: "2026-03-01" } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: id, settled_by: "answer" } },
  ];
};
const received = { message_id: "m", received_at: "2026-03-01T08:00:00.000Z" };

/** Events of a run, and later events about its recipients. */
const HAPPENED: readonly NewEvent[] = [
  { type: "RunStarted", data: { run_id: RUN, dry_run: false } },
  ...(["self", "no_consent", "no_consent"] as const).map(skipped),
  ...["20", "21"].flatMap(sent),
  { type: "RunFinished", data: { run_id: RUN, reason: "daily_limit_reached", ...counts, usage } },
  { type: "DirectMessageReceived", data: { recipient: ada, ...received } },
  { type: "RecipientSuppressed", data: { recipient: ada, reason: "opt_out" } },
  { type: "RunRefused", data: { reason: "window_closed", day: "2026-03-01", used: 2 } },
  clickOf(),
  clickOf(),
  clickOf({ bot: true }),
];

test("a report says what came of the newest run, and of the time since the report before", async () => {
  await using world = await openApp({ env: { ...CHAT, REPORT_EXPECT: "24h" }, logClock: () => NOW });
  const ask = async () => (await (await post(world.app, "/api/report", {}, { token: TOKEN })).json()) as Asked;
  const first = await ask();
  expect(first.report.split("\n")).toEqual([
    "No run has begun yet.",
    "So far: 0 replies, 0 opt-outs, 0 clicks by people. Needs attention: No X account is authorized.",
    "",
    "What to do: http://localhost/console/attention",
    "Daily quota: 0 of 100 messages used today.",
    "Better variant of the message: not known yet.",
  ]);
  await world.authorize();
  await world.append("outreach", ...HAPPENED);
  const { id, report } = await ask();
  expect(report.split("\n")).toEqual([
    "Run 1, started 2026-03-01: 2 sent, 3 skipped, 1 in doubt (may have arrived).",
    "Since 2026-03-01 08:00 UTC (last report): 1 reply, 1 opt-out, 2 clicks by people. Nothing needs attention.",
    "",
    "The run ended: the day's quota is used up. X charges at most $0.03.",
    "Daily quota: 2 of 100 messages used today.",
    "Better variant of the message: not known yet.",
    "Skipped: no consent on record (2), our own account (1).",
    "Runs that could not start: outside the sending hours (1).",
    `The run: http://localhost/console/runs/${RUN}`,
  ]);
  world.now += 27 * HOUR_MS;
  const late = await ask();
  expect(late.report).toStartWith("No run has begun for 27 hours.\nRun 1, started 2026-03-01: 2 sent");
  expect(late.report).toContain("UTC (last report): 0 replies, 0 opt-outs, 0 clicks by people.");
  const events = await world.events("NotificationRequested");
  expect(events.map(({ data: { service, level, report: about } }) => [service, level, about])).toEqual([
    ["reachlog report", "error", { clicks: 0 }],
    ["reachlog report", "info", { clicks: 2 }],
    ["reachlog report", "error", { clicks: 2 }],
  ]);
  expect([events[1]?.id, events[1]?.data.message]).toEqual([id, report]);
});

test("a report judges the variants of its run's campaign", async () => {
  await using world = await openApp({ env: { ...CHAT, MESSAGE_TEMPLATE: "Hi {{name}}" } });
  const text = "Hello\n---\nGood day";
  const template = parseTemplate(text).id;
  const campaign = "spring";
  await world.append("outreach", { type: "CampaignCreated", data: { name: campaign, text, audience: {} } });
  const ask = async () => (await (await post(world.app, "/api/report", {}, { token: TOKEN })).json()) as Asked;
  expect((await ask()).report).not.toMatch(/variant/i);
  const messages = Array.from({ length: 80 }, (_, at): NewEvent[] => {
    const recipient = { id: String(100 + at), username: `user_${at}` };
    const attempt = { attempt_id: `${at}`, run_id: RUN, recipient, campaign };
    const variant = at % 2 === 0 ? "A" : "B";
    const reply = { recipient, message_id: `r${at}`, received_at: "2027-01-01T00:00:00.000Z" };
    return [
      { type: "DirectMessageAttempted", data: { ...attempt, text: "Hi", variant, template, day: "2026-03-01" } },
      { type: "DirectMessageSent", data: { ...attempt, message_id: `m${at}`, settled_by: "answer" } },
      ...(variant === "A" && at > 20 ? [] : [{ type: "DirectMessageReceived", data: reply } as const]),
    ];
  });
  await world.append("outreach", { type: "RunStarted", data: { run_id: RUN, dry_run: false, campaign } });
  await world.append("outreach", ...messages.flat());
  expect((await ask()).report).toContain("Variants of the message: B is better");
  await world.append("outreach", { type: "RunFinished", data: { run_id: RUN, reason: "completed", ...counts } });
  await world.append("outreach", { type: "RunStarted", data: { run_id: "of default", dry_run: false } });
  expect((await ask()).report).not.toMatch(/variant/i);
});

interface Asked {
  readonly id: string;
  readonly report: string;
}

test("a report of two runs since the one before sums up the earlier, and names a run in progress", async () => {
  await using world = await openApp({ env: CHAT });
  const ask = async () => (await (await post(world.app, "/api/report", {}, { token: TOKEN })).json()) as Asked;
  await ask();
  // A report tells all runs that ended up to its millisecond, so these must end later.
  await Bun.sleep(2);
  const runs = ["a", "b"].flatMap((run_id): NewEvent[] => [
    { type: "RunStarted", data: { run_id, dry_run: false } },
    { type: "RunFinished", data: { run_id, reason: "completed", ...counts } },
  ]);
  await world.append("outreach", ...runs, { type: "RunStarted", data: { run_id: "c", dry_run: false } });
  const { report } = await ask();
  expect(report).toMatch(/^Run 3, started [-\d]{10}, is in progress: 0 sent so far\.\n/);
  expect(report).toContain("Before it, 2 more runs: 4 sent, 6 skipped, 2 in doubt (may have arrived).");
});

test("without a chat nothing is reported", async () => {
  await using world = await openApp({ channels: ["ads"] });
  expect(await problemIn(await post(world.app, "/api/report", {}, { token: TOKEN }))).toBe("503 chat-not-configured");
  expect(await world.events("NotificationRequested")).toEqual([]);
});

test("a run reports its end only if REPORT says so, and also while its figures are not folded", async () => {
  await using world = await openApp({ env: { ...CHAT, REPORT: "run" } });
  const ending = { run_id: RUN, reason: "completed", usd: 0.03, ...counts } as const;
  const { deps } = world;
  const state = (): never => {
    throw new Error("is being folded");
  };
  const folding = { ...deps.projector, state };
  const url = `http://localhost/console/runs/${RUN}`;
  expect(await createRunReports({ ...deps, projector: folding })(ending)).toMatchObject([
    {
      data: {
        message: `A run has ended: 2 sent, 3 skipped, 1 in doubt (may have arrived). More: ${url}`,
        report: { run_id: RUN },
      },
    },
  ]);
  await world.append("outreach", { type: "RunStarted", data: { run_id: RUN, dry_run: false } });
  const [whole] = await createRunReports(deps)(ending);
  expect(whole).toMatchObject({ data: { report: { run_id: RUN, clicks: 0 } } });
  const off = { ...deps.config, outreach: { ...deps.config.outreach, report: { ...REPORT_OFF } } };
  expect(await createRunReports({ ...deps, config: off })(ending)).toEqual([]);
  expect(await createRunReports({ ...deps, config: { ...deps.config, chat: undefined } })(ending)).toEqual([]);
});

const REPORT_OFF = { isAfterRun: false, expectedHours: undefined };

test("the end of a run and its report are one append, also if its process died; a dry run has none", async () => {
  await using world = await openOutreach("10", "11");
  const reportEnd = async ({ run_id, reason }: { readonly run_id: string; readonly reason: string }) => [
    {
      type: "NotificationRequested",
      data: { message: reason, service: "s", level: "info", report: { run_id } },
    } as const,
  ];
  const first = await world.start({ reportEnd });
  await first.run({ dryRun: true });
  await first.run({ selection: { limit: 1 } });
  world.network.sendDm = () => {
    first.die();
    return new Promise(() => {});
  };
  void first.run();
  await first.dead;
  const second = await world.start({ reportEnd });
  await second.runner.recover({ steal: true });
  const events = await world.events("RunFinished", "RunAbandoned", "NotificationRequested");
  expect(events.map(({ type, data }) => [type, "message" in data ? data.message : data.run_id])).toEqual([
    ["RunFinished", expect.any(String)],
    ["NotificationRequested", "limit_reached"],
    ["RunAbandoned", expect.any(String)],
    ["NotificationRequested", "abandoned"],
  ]);
  const ids = events.map(({ data }) => ("report" in data ? data.report?.run_id : (data as { run_id: string }).run_id));
  expect(ids).toEqual([ids[0], ids[0], ids[2], ids[2]]);

  world.network.inbox = () => {
    second.die();
    return new Promise(() => {});
  };
  void second.run({ dryRun: true });
  await second.dead;
  await (await world.start({ reportEnd })).runner.recover({ steal: true });
  const later = await world.events("RunAbandoned", "NotificationRequested");
  expect(later.map(({ type }) => type).slice(-2)).toEqual(["NotificationRequested", "RunAbandoned"]);
});

test("a report has at most 900 characters as it arrives, and keeps what matters most", () => {
  const title = "4,000 dispatches may or may not have reached Webhook with-a-very-long-name";
  const reasons = ["already_contacted", "suppressed", "no_consent", "cannot_receive_dm", "protected", "self"] as const;
  const figures: ReportFigures = {
    run: {
      name: "Run 1,234",
      template: "t".repeat(64),
      startedAt: "2026-03-01T08:00:00.000Z",
      end: "clock_skewed",
      usd: 1_234.567,
      skips: new Map(reasons.map((reason) => [reason, 100_000])),
      url: `https://${"host.".repeat(30)}example/console/runs/${RUN}`,
      sent: 100_000,
      skipped: 100_000,
      failed: 100_000,
      in_doubt: 100_000,
    },
    quota: { used: 100_000, limit: 100_000, window: "last_24_hours" },
    earlier: { runs: 400, sent: 100_000, skipped: 100_000, failed: 100_000, in_doubt: 100_000 },
    since: { at: "2026-03-01T08:00:00.000Z", replies: 9_999, opt_outs: 9_999, clicks: 9_999_999, refused: new Map() },
    verdict: "none",
    overdueHours: 99_999,
    open: Array.from({ length: 9 }, () => ({ title })),
    openUrl: `https://${"host.".repeat(30)}example/console/attention`,
  };
  const text = wordReport(figures);
  expect(text.length).toBeLessThanOrEqual(REPORT_CHARACTERS_MAX);
  expect(`[CRITICAL] reachlog report: `.length + REPORT_CHARACTERS_MAX).toBeLessThanOrEqual(900);
  expect(text.split("\n")).toEqual([
    "No run has begun for 99,999 hours.",
    expect.stringMatching(/^Run 1,234, started 2026-03-01: 100,000 sent, .* in doubt \(may have arrived\)\.$/),
    expect.stringMatching(/^Since 2026-03-01 08:00 UTC \(last report\): .* Needs attention: .*; 6 more\.$/),
    "",
    expect.stringMatching(/^What to do: /),
    expect.stringMatching(/^Message: t{40}…\. The run ended: .* X charges at most \$1,234\.57\.$/),
  ]);
});

test("docs/run.md shows a whole report as it is written", () => {
  const run: ReportFigures["run"] = {
    name: "Run 36",
    template: "Autumn invite",
    startedAt: "2026-11-29T10:00:00.000Z",
    end: "daily_limit_reached",
    usd: 2.87,
    skips: new Map([
      ["already_contacted", 3],
      ["no_consent", 9],
    ]),
    url: `https://reach.example/console/runs/${RUN}`,
    sent: 98,
    skipped: 9,
    contacted: 3,
    failed: 1,
    in_doubt: 1,
  };
  const figures: ReportFigures = {
    run,
    quota: { used: 100, limit: 100, window: "day" },
    earlier: undefined,
    since: {
      at: "2026-11-28T17:05:00.000Z",
      replies: 7,
      opt_outs: 1,
      clicks: 23,
      refused: new Map([["window_closed", 2]]),
    },
    verdict: {
      template: "0123456789ab",
      template_name: "Autumn invite",
      sent: 400,
      outcome: "better",
      winner: { clicked: "B", replied: null },
      more_messages: null,
      title: "B is better: twice as many click",
      explanation: "48 % clicked with B, 25 % with A.",
    },
    overdueHours: undefined,
    open: [{ title: "1 message may or may not have arrived" }],
    openUrl: "https://reach.example/console/attention",
  };
  const documented = readFileSync(new URL("../../docs/run.md", import.meta.url), "utf8");
  const [, example] = /```text\n(Run [^`]*)\n```/.exec(documented) ?? [];
  expect(example).toBe(wordReport(figures));
  const [result] = wordReport(figures).split("\n\n");
  expect(result!.split(/\s+/).length).toBeLessThanOrEqual(40);
  const afterChange = wordReport({ ...figures, quota: { ...figures.quota, window: "last_24_hours" } });
  expect(afterChange).toContain("Daily quota: 100 of 100 messages used in the last 24 hours.");
});
