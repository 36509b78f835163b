// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { makeEvent, type DataOf } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import type { AppHarness } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { confirmStart, openConsole, pageAt, rowsOf, textsAt } from "../open-console.ts";

const TEXT = "Hi {{name}}, from {{company|us}}\n\n---\nHello <{{username}}>";
const { id: template } = parseTemplate(TEXT);
const USAGE = { sends: 0, users: 69, followers: 0, posts: 0, messages: 10, usd: 0.79 };
const RULES = { daily_limit: 100, timezone: "UTC", require_consent: true, template, template_name: "Winter guide" };

const ada = { id: "1001", username: "ada" };
const bob = { id: "1002", username: "bob" };

type Listed = Omit<DataOf<"DryRunRecipientListed">, "run_id">;

/** Opens a console with a dry run that lists these recipients. */
async function openDryRun(
  listed: readonly Listed[],
  found: Partial<DataOf<"DryRunFinished">>,
  begun: Partial<DataOf<"RunStarted">> = {},
) {
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: TEXT } });
  await harness.authorize();
  const run_id = makeId();
  const started = { run_id, dry_run: true, rules: RULES, ...begun };
  await harness.store.append("outreach", [makeEvent("RunStarted", makeId(), started, { caller: "mara" })]);
  const finished = { run_id, reason: "completed", would_send: 0, would_skip: 0, ...found } as const;
  await harness.append(
    "outreach",
    ...listed.map((data): NewEvent => ({ type: "DryRunRecipientListed", data: { run_id, ...data } })),
    { type: "DryRunFinished", data: finished },
  );
  return { harness, path: `/runs/dry/${run_id}` };
}

const LISTED: readonly Listed[] = [
  { recipient: { username: "gus" }, reason: "no_consent", detail: "the date is missing" },
  { recipient: bob, name: "Bob X", variant: "A" },
  { recipient: ada, variant: "B" },
];
const FOUND = {
  would_send: 2,
  would_skip: 9,
  usage: USAGE,
  estimate: { ...USAGE, sends: 2, usd: 0.82 },
  variants: { A: 1, B: 1 },
  skips: { no_consent: 4, already_contacted: 5 },
  passed: { failed_before: 3, held: 1 },
};

async function mainAt(harness: AppHarness, path: string): Promise<string> {
  return (await textsAt(await pageAt(harness, path), "main"))[0]?.text ?? "";
}

test("a dry run has a page with totals, cost, time, quota and skips by reason, and a reload asks no one", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND);
  const head = await harness.store.head();
  const text = await mainAt(harness, path);
  expect(text).toMatch(/2 people would get a message/);
  expect(text).toContain(
    "4 would be skipped. 5 people were contacted earlier. The message to 3 more people failed earlier. 1 reply waits for your decision.",
  );
  expect(text).toContain("A run now costs at most $0.82, plus new replies");
  expect(text).toContain("2 messages $0.03, 69 people looked up $0.69, 10 inbox messages read $0.10.");
  expect(text).toContain("This dry run cost at most $0.79.");
  expect(text).toContain("It takes about 2 min");
  expect(text).toContain("2 of 100 messages used after it");
  expect(text).toContain("No consent on record");
  expect(text).toContain("The first 1 of 4.");
  expect(text).toContain("by mara");
  expect(await mainAt(harness, path)).toBe(text);
  expect(await harness.store.head()).toEqual(head);
  expect(harness.triggers).toEqual([]);
});

test("a check that warns of replies in X Chat has the sign of a warning", async () => {
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: "Hi, reply STOP to opt out" } });
  await harness.authorize();
  const run_id = makeId();
  await harness.append(
    "outreach",
    { type: "RunStarted", data: { run_id, dry_run: true } },
    { type: "DryRunFinished", data: { run_id, reason: "completed", would_send: 0, would_skip: 0 } },
  );
  const checks = await textsAt(await pageAt(harness, `/runs/dry/${run_id}`), ".checks .doubtful");
  expect(checks.map(({ text }) => text)).toEqual([expect.stringContaining("X Chat")]);
});

test("a dry run of a campaign shows the campaign's texts, and how its message offers to opt out", async () => {
  const text = "Spring: {{name}}, reply STOP to opt out";
  const rules = { ...RULES, template: parseTemplate(text).id, template_name: "spring" };
  const listed = [{ recipient: bob, name: "Bob X", variant: "A" }];
  const found = { would_send: 1, would_skip: 0, variants: { A: 1 } };
  const { harness, path } = await openDryRun(listed, found, { rules, campaign: "spring" });
  const data = { name: "spring", text, audience: {} };
  await harness.append("outreach", { type: "CampaignCreated", data });
  const page = await pageAt(harness, path);
  expect(await rowsOf(page)).toEqual(["@bob (Bob X) | A | Spring: Bob X, reply STOP to opt out"]);
  expect((await textsAt(page, ".checks .doubtful")).map((check) => check.text)).toEqual([
    expect.stringContaining("X Chat"),
  ]);
  await harness.append("outreach", { type: "CampaignChanged", data: { ...data, text: "Summer" } });
  expect(await mainAt(harness, path)).toContain("The message has changed since, so its texts are not shown.");
});

test("the texts are rendered from the template and the fields of now, with markup escaped", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND);
  expect(await rowsOf(await pageAt(harness, path))).toEqual([
    "@bob (Bob X) | A | Hi Bob X, from us",
    "@ada | B | Hello &lt;ada>",
  ]);
  await harness.append("outreach", addedOf(bob, { fields: { company: "Acme" }, name: "Bob" }));
  expect((await rowsOf(await pageAt(harness, path)))[0]).toBe("@bob (Bob) | A | Hi Bob, from Acme");
});

test("after a change of the message the page says so, and shows no text", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND, { rules: { ...RULES, template: "another" } });
  expect(await rowsOf(await pageAt(harness, path))).toEqual(["@bob (Bob X) | A | –", "@ada | B | –"]);
  expect(await mainAt(harness, path)).toContain("The message has changed since");
});

test("the page offers the run with the limits of the dry run, and says which run has started since", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND, { limit: 20, basis: "opt_in" });
  const { text, selection } = await confirmStart(harness, path);
  expect(text).toContain("Start the run for 2 people?");
  expect(text).toContain("1 of variant A and 1 of variant B. A sent message cannot be taken back.");
  expect(text).toContain("It costs at most $0.82");
  expect(text).toContain("2 of today's 100 messages are used after it.");
  expect(selection).toEqual({ limit: "2", basis: "opt_in" });
  expect(await mainAt(harness, path)).toContain("No run has started since.");
  harness.now += 60_000;
  await harness.append("outreach", { type: "RunStarted", data: { run_id: makeId(), dry_run: false } });
  expect(await mainAt(harness, path)).toContain("Run 1 has started since.");
  const past = await pageAt(harness, `${path}?as_of=6`);
  expect(past).not.toContain("Start run…");
});

test("a run of fewer messages than the dry run found has none of its figures", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND);
  const { text, selection } = await confirmStart(harness, path, { limit: "1" });
  expect(text).toContain("Start a run of at most 1 message?");
  expect(text).not.toMatch(/2 people|\$0\.82|variant/);
  expect(text).toContain("At most 1 of today's 100 messages are used after it.");
  expect(selection).toEqual({ limit: "1" });
});

test("a dry run of a campaign offers a run of that campaign, until the campaign has ended", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND, { campaign: "spring" });
  const spring = { name: "spring", text: "Hi", audience: {} };
  await harness.append("outreach", { type: "CampaignCreated", data: spring });
  const { text, selection } = await confirmStart(harness, path);
  expect(text).toContain("Start the run for 2 people?Each gets one message of the campaign spring as @we");
  expect(selection).toEqual({ limit: "2", campaign: "spring" });
  await harness.append("outreach", { type: "CampaignEnded", data: { name: "spring" } });
  expect(await pageAt(harness, path)).not.toContain("Start run…");
});

test("a dry run of an earlier day names its day, and offers a new one instead of a run", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND);
  expect(await pageAt(harness, path)).toContain("Start run…");
  const made = new Date();
  harness.now = made.getTime() + 14 * 86_400_000;
  const page = await pageAt(harness, path);
  expect(page).not.toContain("Start run…");
  expect((await textsAt(page, ".dry form button")).map(({ text }) => text)).toEqual(["Make a new dry run"]);
  const text = await mainAt(harness, path);
  const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }).format(made);
  expect(text).toContain(`It would have used 2 messagesQuota of ${day}`);
  expect(text).toContain("A run then would have cost at most $0.82, plus new replies");
  expect(text).toContain("It was made on another day, so its figures hold no longer.");
  expect(text).not.toMatch(/A run now|used after it|went out today/);
});

test("a dry run after which messages were sent offers a new one instead of a run", async () => {
  const { harness, path } = await openDryRun(LISTED, FOUND);
  const run_id = makeId();
  const counts = { sent: 1, skipped: 0, failed: 0, in_doubt: 0 };
  await harness.append("outreach", { type: "RunStarted", data: { run_id, dry_run: false } });
  expect(await pageAt(harness, path)).toContain("Start run…");
  await harness.append("outreach", { type: "RunFinished", data: { run_id, reason: "stopped", ...counts } });
  expect(await pageAt(harness, path)).not.toContain("Start run…");
  expect(await mainAt(harness, path)).toContain("Messages were sent since, so its figures hold no longer.");
});

test("a dry run that ended at the quota says after how many people, and where all are counted", async () => {
  const quota = { ...FOUND, reason: "daily_limit_reached" } as const;
  const { harness, path } = await openDryRun(LISTED, quota, { campaign: "spring" });
  const others = Array.from({ length: 20 }, (_, at) => addedOf({ username: `user_${at}` }));
  await harness.append("outreach", { type: "CampaignCreated", data: { name: "spring", text: "Hi", audience: {} } });
  expect(await mainAt(harness, path)).not.toContain("known people");
  await harness.append("outreach", ...others);
  const [main] = await textsAt(await pageAt(harness, path), ".dry p.quiet");
  expect(main?.text).toContain(
    "The dry run ended after 15 of 23 known people; the campaign spring has the count of all.",
  );
  expect(main?.links).toEqual(["/campaigns/spring"]);
  const complete = await openDryRun(LISTED, FOUND);
  await complete.harness.append("outreach", ...others);
  expect(await mainAt(complete.harness, complete.path)).not.toContain("known people");
});

test("a dry run of very many recipients is paged", async () => {
  const sends = Array.from({ length: 120 }, (_, at): Listed => {
    return { recipient: { id: `${9_000 + at}`, username: `user_${at}` }, variant: "A" };
  });
  const { harness, path } = await openDryRun(sends, { would_send: 120, variants: { A: 120 } });
  const first = await pageAt(harness, path);
  expect(await rowsOf(first)).toHaveLength(50);
  expect(first.length).toBeLessThan(200_000);
  const more = /<a href="([^"]+)">More messages/.exec(first)?.[1] ?? "";
  expect((await rowsOf(await pageAt(harness, more)))[0]).toStartWith("@user_50 ");
});

test("an older dry run without a list shows its totals, and an unknown one has no page", async () => {
  const { harness, path } = await openDryRun([], { would_send: 3, would_skip: 2 });
  expect(await mainAt(harness, path)).toContain("3 people would get a message");
  await pageAt(harness, `/runs/dry/${makeId()}`, 404);
});
