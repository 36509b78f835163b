// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { EventType } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { post, problemIn, TOKEN, type AppHarness, type Given } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { openConsole, pageAt, textsAt } from "../open-console.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const ENVIRONMENT = { MESSAGE_TEMPLATE: "Hi", DAILY_LIMIT: "100", REQUIRE_CONSENT: "true" };
const IDS = ["10", "11", "12"];
const COUNTS = { sent: 3, skipped: 0, failed: 0, in_doubt: 0 };

const sentTo = (id: string, day: string): NewEvent[] => {
  const attempt = { attempt_id: `to ${id}`, run_id: "r", recipient: { id, username: `user_${id}` } };
  const written = { text: "Hi", variant: "A", template: parseTemplate("Hi").id, links: [] };
  const why = { basis: "opt_in", source: "list", day, timezone: "UTC" } as const;
  return [
    { type: "DirectMessageAttempted", data: { ...attempt, ...written, ...why } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: `m${id}`, settled_by: "answer" } },
  ];
};

/** Returns the UTC day of the log's newest event. */
async function dayIn({ store }: AppHarness): Promise<string> {
  const [newest] = await Array.fromAsync(store.read({ backwards: true, limit: 1 }));
  return newest!.time.slice(0, 10);
}

/** Opens a service whose log has one run with three sent messages. */
async function openHistory(given: Given = {}): Promise<AppHarness> {
  const harness = await openConsole({ env: ENVIRONMENT, ...given });
  await harness.authorize();
  const day = await dayIn(harness);
  const events: readonly NewEvent[] = [
    ...IDS.map((id) => addedOf({ id, username: `user_${id}` })),
    { type: "RunStarted", data: { run_id: "r", dry_run: false } },
    ...IDS.flatMap((id) => sentTo(id, day)),
    { type: "RunFinished", data: { run_id: "r", reason: "completed", ...COUNTS } },
  ];
  await harness.append("outreach", ...events);
  return harness;
}

async function compare(harness: AppHarness, rules: Readonly<Record<string, string>>): Promise<Response> {
  const form_token = /name="form_token" value="([^"]+)"/.exec(await pageAt(harness, "/what-if"))?.[1] ?? "";
  const body = new URLSearchParams({ form_token, back: "/what-if", SEND_WINDOW: "", ...rules }).toString();
  return post(harness.app, "/console/what-if", body, { headers: FORM });
}

const typesSince = async ({ store }: AppHarness, position: number): Promise<readonly EventType[]> =>
  (await Array.fromAsync(store.read({ from: position + 1 }))).map(({ type }) => type);

test("the page has a form, and showing it appends nothing", async () => {
  const harness = await openHistory();
  const { position } = await harness.store.head();
  const page = await pageAt(harness, "/what-if");
  expect(page).toContain('action="/console/what-if"');
  const [beforeOthers = "", others = ""] = page.slice(page.indexOf("<main")).split("<summary>7 more rules</summary>");
  const names = (part: string) =>
    [...part.matchAll(/<(?:input|select|textarea)[^>]* name="([A-Z_]+)"/g)].map(([, name]) => name!);
  expect(names(beforeOthers)).toEqual(["DAILY_LIMIT", "REQUIRE_CONSENT", "SEND_WINDOW", "STOP_AFTER_FAILURES"]);
  expect(names(others)).toContain("MESSAGE_TEMPLATE");
  expect(page).toContain('placeholder="today: 100"');
  expect(page).toContain("<option value>today: required</option>");
  expect(await pageAt(harness, "/results")).toContain('href="/what-if"');
  expect(await typesSince(harness, position)).toEqual([]);
});

test("today's rules differ in nothing, and one event records the question", async () => {
  const harness = await openHistory();
  const { position } = await harness.store.head();
  const answer = await compare(harness, { DAILY_LIMIT: "100" });
  expect(answer.status).toBe(200);
  const page = await answer.text();
  expect(page).toContain("Nothing differs");
  expect(page).toContain(`href="/activity/${position + 1}"`);
  expect(await typesSince(harness, position)).toEqual(["WhatIfAsked"]);
});

test("another limit shows the totals first, then the recipients and the days", async () => {
  const harness = await openHistory();
  const day = await dayIn(harness);
  const page = await (await compare(harness, { DAILY_LIMIT: "2" })).text();
  const rows = [...page.matchAll(/<tr role="row"><th[^>]*>(.*?)<\/tr>/g)].map(([, row]) =>
    row!
      .replaceAll(/<[^>]+>/g, " ")
      .replaceAll(/ +/g, " ")
      .trim(),
  );
  expect(rows).toContain(`${day} messages 3 2 -1 –`);
  expect(rows.some((row) => row.startsWith("total"))).toBe(false);
  const totals = await textsAt(page, "dl.figures > div");
  expect(totals.slice(0, 2).map(({ text }) => text)).toEqual(["messages2 -1, was 3", "sent2 -1, was 3"]);
  expect(page.indexOf("figures")).toBeLessThan(page.indexOf("had a message and would have none"));
  expect(page.indexOf("had a message and would have none")).toBeLessThan(page.indexOf("Day by day"));
  expect(page).toMatch(/name="DAILY_LIMIT"[^>]* value="2"/);
  expect(page).toContain("1 had a message and would have none");
  expect(page).toMatch(/href="\/people\/12".*message on [-\d]{10}.*nothing/);
});

test.each([
  [{ DAILY_LIMIT: "0" }, 'value="0"', "DAILY_LIMIT: "],
  [{ SEND_WINDOW: "someday" }, 'value="someday"', "SEND_WINDOW: "],
  [{ STOP_WORDS: "none", BOT_RULE: "some" }, 'value="some"', "BOT_RULE: "],
  [{}, "", "none differs. Fill in at least one."],
])("the rules %o are refused with the reason, and stay in the form", async (rules, field, reason) => {
  const harness = await openHistory();
  const { position } = await harness.store.head();
  const answer = await compare(harness, rules);
  expect(answer.status).toBe(422);
  const page = await answer.text();
  expect(page).toMatch(new RegExp(`role="alert">[^<]*${reason}`));
  expect(page).toContain(field);
  expect(await typesSince(harness, position)).toEqual([]);
});

test("the word none unsets a rule", async () => {
  const harness = await openHistory({ env: { ...ENVIRONMENT, STOP_AFTER_FAILURES: "30%" } });
  const page = await (await compare(harness, { STOP_AFTER_FAILURES: "none" })).text();
  expect(page).toContain("Nothing differs");
});

test("the API answers with JSON, one question at a time", async () => {
  const harness = await openHistory({ tokens: true });
  const ask = () => post(harness.app, "/api/what-if", { DAILY_LIMIT: 2 }, { token: TOKEN });
  const [first, second] = await Promise.all([ask(), ask()]);
  expect(await first.json()).toMatchObject({
    rules: ["DAILY_LIMIT"],
    total: { messages: { was: 3, would: 2, difference: -1 } },
    recipients: { lost: { count: 1 } },
  });
  expect(second.headers.get("retry-after")).toBe("5");
  expect(await problemIn(second)).toBe("503 overloaded");
  expect((await ask()).status).toBe(200);
  const wrong = await post(harness.app, "/api/what-if", { DAILY_LIMIT: 0 }, { token: TOKEN });
  expect([wrong.status, await wrong.json()]).toMatchObject([422, { errors: [{ path: "/DAILY_LIMIT" }] }]);
  const unknown = await post(harness.app, "/api/what-if", { PORT: 3 }, { token: TOKEN });
  expect(await problemIn(unknown)).toBe("422 invalid-request");
});

test("a page of an earlier moment has no form", async () => {
  const harness = await openHistory();
  const page = await pageAt(harness, "/what-if?as_of=3");
  expect(page).toContain("Rules cannot be compared on a page of the past.");
  expect(page).not.toContain('action="/console/what-if"');
});
