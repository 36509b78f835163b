// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";
import { click, openConsole, pageAt, textsAt } from "../open-console.ts";

const RUN = "0193a000-0000-7000-8000-0000000000aa";
const HOUR_MS = 3_600_000;

const message = (number: number) => ({
  attempt_id: `a${number}`,
  run_id: RUN,
  recipient: { id: `${1_000 + number}`, username: `person_${number}` },
});
const sent = (number: number): NewEvent => ({
  type: "DirectMessageSent",
  data: { ...message(number), message_id: `m${number}`, settled_by: "answer" },
});
const skipped = (number: number): NewEvent => {
  const { run_id, recipient } = message(number);
  return { type: "DirectMessageSkipped", data: { run_id, recipient, reason: "no_consent" } };
};
const failed = (number: number): NewEvent => ({
  type: "DirectMessageFailed",
  data: { ...message(number), reason: "recipient_closed", detail: "", frees_quota: true, retry: false },
});
const STARTED: NewEvent = { type: "RunStarted", data: { run_id: RUN, dry_run: false } };
const abandoned = outcomeOf("DispatchAbandoned", {
  source: 1,
  lane: "clicks",
  low_watermark: 1,
  channel: "chat",
  status: 429,
  detail: "Slack answered 429 rate_limited",
  refused: false,
});

/**
 * Opens a console whose log has a run with two clicks after each of its outcomes, then a dead letter and an opt-out.
 */
async function openNews() {
  const harness = await openConsole();
  const between = (events: readonly NewEvent[]) => events.flatMap((event) => [event, click("a"), click("b", true)]);
  const messages = [...Array.from({ length: 12 }, (_, at) => sent(at)), skipped(20), failed(21)];
  const counts = { sent: 12, skipped: 1, failed: 1, in_doubt: 0 };
  await harness.append("outreach", STARTED, ...between(messages));
  await harness.append("outreach", { type: "RunFinished", data: { run_id: RUN, reason: "completed", ...counts } });
  await harness.append("delivery-chat", abandoned);
  await harness.append("outreach", {
    type: "RecipientSuppressed",
    data: { recipient: { username: "sam" }, reason: "opt_out" },
  });
  return harness;
}

test("a day is a few lines with the counts of its run, its clicks and what went wrong", async () => {
  const page = await pageAt(await openNews(), "/activity");
  expect(
    (await textsAt(page, "main > .day > .lines > li.line .sentence, summary .sentence"))
      .map(({ text }) => text)
      .toSorted(),
  ).toEqual([
    "14 clicks by people on 2 links · 14 by bots",
    "@sam opted out. No run will message them again",
    "Chat did not take 1 dispatch: 429 from Slack, rate_limited",
    "Run 1: 12 sent, 1 skipped, 1 failed",
  ]);
  expect((await textsAt(page, ".day > header")).map(({ text }) => text)[0]).toContain(
    "12 sent · 14 clicks by people · 1 dispatch given up",
  );
  expect((await textsAt(page, ".badge.bad")).map(({ text }) => text)).toContain("Error");
});

test("the sums of a day say how many dispatches were given up, retried and discarded, only where there are some", async () => {
  const { harness, pass } = await openTimed();
  const letter = (source: number) => ({ event_id: `e${source}`, source, channel: "chat" as const });
  const retry = (source: number): NewEvent => ({ type: "DispatchRetryRequested", data: letter(source) });
  const sums = async () => (await textsAt(await pageAt(harness, "/activity"), ".day > header")).map(({ text }) => text);
  await harness.append("delivery-chat", abandoned, abandoned, retry(1));
  await harness.append("delivery-chat", { type: "DispatchDiscarded", data: { ...letter(2), why: "over" } });
  await harness.append("delivery-chat", {
    type: "DispatchRetryRequested",
    data: { ...letter(3), in_doubt: true, may_double: true },
  });
  expect((await sums())[0]).toEndWith("2 dispatches given up, 1 retried, 1 discarded");
  pass(24);
  await harness.append("delivery-chat", retry(4));
  expect((await sums())[0]).toEndWith("1 dispatch retried");
});

test("a line unfolds to what went wrong first, to ten rows and a link to the rest, and is no link itself", async () => {
  const page = await pageAt(await openNews(), "/activity");
  const run = page.slice(page.indexOf(`id="run-${RUN}"`));
  const unfolded = run.slice(0, run.indexOf("</details>"));
  const rows = await textsAt(unfolded, "li .sentence");
  expect(rows.map(({ text }) => text).slice(0, 3)).toEqual([
    "Not delivered to @person_21: their account takes no messages",
    "Skipped @person_20: no consent on record",
    "Sent to @person_0",
  ]);
  expect(rows).toHaveLength(10);
  expect(rows[0]?.links).toEqual(["/people/1021"]);
  expect(await textsAt(unfolded, ".more")).toEqual([{ text: "4 more messages, in Run 1", links: [`/runs/${RUN}`] }]);
  for (const summary of await textsAt(page, "summary")) expect(summary.links).toEqual([]);
  expect(page).not.toMatch(/<summary[^>]*>(?:(?!<\/summary>).)*<button/s);
});

test("the unfolded clicks are a table by link, and a link leads to exactly these clicks", async () => {
  const harness = await openNews();
  const page = await pageAt(harness, "/activity");
  const rows = await textsAt(page, ".tally tbody tr");
  expect(rows.map(({ text, links }) => [text, ...links])).toEqual([
    ["go.example/a140", "/links/go.example/a"],
    ["go.example/b014", "/links/go.example/b"],
  ]);
  const [all] = (await textsAt(page, ".more")).filter(({ text }) => text === "All 28 clicks");
  const listed = await pageAt(harness, all?.links[0] ?? "");
  expect(await textsAt(listed, ".line")).toHaveLength(28);
});

/** Opens a console whose log begins at 08:00 on 1 March 2026, and the function that lets hours pass. */
async function openTimed() {
  const time = { now: Date.parse("2026-03-01T08:00:00.000Z") };
  const harness = await openConsole({ logClock: () => time.now });
  const pass = (hours: number) => (harness.now = time.now += hours * HOUR_MS);
  return { harness, pass };
}

test("today and yesterday are open, and an older day is a line that leads to its own lines", async () => {
  const { harness, pass } = await openTimed();
  for (let day = 0; day < 4; day++) {
    await harness.append("outreach", STARTED, ...Array.from({ length: day + 1 }, () => click("a")));
    pass(24);
  }
  await harness.append("outreach", click("b"));
  const page = await pageAt(harness, "/activity");
  expect((await textsAt(page, ".day h2")).map(({ text }) => text)).toEqual([
    "Today, Thursday 5 March",
    "Yesterday, Wednesday 4 March",
  ]);
  const older = await textsAt(page, ".days li");
  expect(older.map(({ text, links }) => [text, ...links])).toEqual([
    ["Tuesday 3 March3 clicks by people", "/activity?day=2026-03-03"],
    ["Monday 2 March2 clicks by people", "/activity?day=2026-03-02"],
    ["Sunday 1 March1 click by people", "/activity?day=2026-03-01"],
  ]);
  const opened = await pageAt(harness, "/activity?day=2026-03-02");
  expect((await textsAt(opened, ".day h2")).map(({ text }) => text)).toEqual(["Monday 2 March", "Sunday 1 March"]);
  expect((await textsAt(opened, "summary .sentence")).map(({ text }) => text)).toContain(
    "2 clicks by people on go.example/a",
  );
});

test("news since a position leave out the lines that ended before", async () => {
  const { harness, pass } = await openTimed();
  await harness.append("outreach", click("a"));
  pass(5);
  await harness.append("outreach", click("b"));
  const page = await pageAt(harness, "/activity?show=news&from=2");
  expect((await textsAt(page, "summary .sentence")).map(({ text }) => text)).toEqual([
    "1 click by people on go.example/b",
  ]);
});

test("there are no news since a position after the end of the log", async () => {
  const { harness } = await openTimed();
  await harness.append("outreach", click("a"));
  const page = await pageAt(harness, "/activity?show=news&from=999");
  expect(await textsAt(page, "summary .sentence")).toEqual([]);
});

test("a day of many runs shows a bounded number of events, also after lines that are one event each", async () => {
  const { harness, pass } = await openTimed();
  const received = Array.from({ length: 10 }, (_, at): NewEvent => {
    const { recipient } = message(at);
    return {
      type: "DirectMessageReceived",
      data: { recipient, message_id: `m${at}`, received_at: "2026-03-01T08:00:00.000Z" },
    };
  });
  await harness.append("outreach", ...received);
  pass(0.1);
  const refused = { reason: "daily_limit_reached", day: "2026-03-01", used: 1 } as const;
  await harness.append("outreach", { type: "RunRefused", data: refused });
  for (let number = 0; number < 13; number++) {
    const run_id = RUN.replace(/aa$/, String(10 + number));
    const skips = Array.from({ length: 10 }, (_, at): NewEvent => {
      return { type: "DirectMessageSkipped", data: { run_id, recipient: message(at).recipient, reason: "no_consent" } };
    });
    const counts = { sent: 0, skipped: 10, failed: 0, in_doubt: 0 };
    pass(0.1);
    await harness.append("outreach", { type: "RunStarted", data: { run_id, dry_run: false } }, ...skips, {
      type: "RunAbandoned",
      data: { run_id, ...counts },
    });
  }
  const rows = await textsAt(await pageAt(harness, "/activity"), "details li .sentence");
  expect(rows).toHaveLength(120);
});
