// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { makeEvent } from "../../../events/event-types-and-codec.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { parseTemplate } from "../../../src/template/template.ts";
import { ask } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { openConsole, pageAt, rowsOf, textsAt } from "../open-console.ts";

const counts = { sent: 0, skipped: 0, failed: 0, in_doubt: 0 };

const started = (run_id: string): NewEvent => ({ type: "RunStarted", data: { run_id, dry_run: false } });
const finished = (run_id: string): NewEvent => ({
  type: "RunFinished",
  data: { run_id, reason: "completed", ...counts },
});
const skipped = (run_id: string, username: string): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id, recipient: { username }, reason: "no_consent" },
});

const ada = { id: "1001", username: "ada" };
const bob = { id: "1002", username: "bob" };

/** Events of a message to a recipient, with its outcome. */
function messaged(run_id: string, recipient: typeof ada, outcome: "sent" | "failed" | "in_doubt"): NewEvent[] {
  const one = { attempt_id: `to ${recipient.id}`, run_id, recipient };
  const outcomes = {
    sent: { type: "DirectMessageSent", data: { ...one, message_id: "m", settled_by: "answer" } },
    failed: {
      type: "DirectMessageFailed",
      data: { ...one, reason: "recipient_closed", detail: "", frees_quota: true, retry: false },
    },
    in_doubt: { type: "DirectMessageInDoubt", data: { ...one, detail: "X gave no answer within 10 s" } },
  } as const;
  const data = { ...one, text: "Hi", variant: "A", day: "2026-11-20" };
  return [{ type: "DirectMessageAttempted", data }, outcomes[outcome]];
}

describe("the page of a run", () => {
  const usage = { sends: 2, users: 3, followers: 0, posts: 0, messages: 1, usd: 0.07 };
  const rules = { daily_limit: 100, timezone: "UTC", require_consent: true, template: "t1" } as const;

  async function openRun() {
    const harness = await openConsole();
    const [before, run, after] = [makeId(), makeId(), makeId()];
    await harness.append("outreach", started(before), finished(before));
    const begun = { run_id: run, dry_run: false, limit: 15, rules };
    await harness.store.append("outreach", [makeEvent("RunStarted", makeId(), begun, { caller: "mara" })]);
    await harness.append(
      "outreach",
      skipped(run, "gus"),
      ...messaged(run, ada, "sent"),
      { type: "RunPaused", data: { run_id: run, reason: "rate_limited", until: "2040-01-01T00:00:00.000Z" } },
      ...messaged(run, bob, "in_doubt"),
      {
        type: "RunFinished",
        data: { run_id: run, reason: "limit_reached", sent: 1, skipped: 1, failed: 0, in_doubt: 1, usage },
      },
      started(after),
      skipped(after, "eve"),
    );
    return { harness, before, run, after };
  }

  test("has its number as an address too", async () => {
    const { harness, run } = await openRun();
    expect(await rowsOf(await pageAt(harness, "/runs/2"))).toEqual(await rowsOf(await pageAt(harness, `/runs/${run}`)));
    expect((await ask(harness.app, "/runs/4")).status).toBe(404);
  });

  test("lists its own recipients with their outcomes, and what came after or why", async () => {
    const { harness, run } = await openRun();
    const clock = /\d\d:\d\d/;
    const rows = async (query = "") =>
      (await rowsOf(await pageAt(harness, `/runs/${run}${query}`))).map((row) => row.replace(clock, "TIME"));
    expect(await rows()).toEqual([
      "@gus | Skipped | TIME | – | no consent on record",
      "@ada | Sent | TIME | A | –",
      "@bob | In doubt | TIME | A | X gave no answer within 10 s",
    ]);
    expect(await rows("?outcome=in_doubt")).toHaveLength(1);
    await harness.append("outreach", {
      type: "DirectMessageReceived",
      data: { recipient: ada, message_id: "m2", received_at: "2040-01-01T00:00:00.000Z" },
    });
    const [, found] = messaged(run, bob, "sent");
    await harness.append("outreach", { ...found, data: { ...found!.data, settled_by: "lookup" } } as NewEvent);
    expect((await rows()).slice(1)).toEqual([
      "@ada | Sent | TIME | A | replied",
      "@bob | Sent | TIME | A | in doubt at first",
    ]);
  });

  test("has its counts, its end, its cost with the parts, its caller and its neighbours", async () => {
    const { harness, before, run, after } = await openRun();
    const page = await pageAt(harness, `/runs/${run}`);
    const [main] = await textsAt(page, "main");
    expect(main?.text).toMatch(/(\d\d:\d\d:\d\d) to \d\d:\d\d:\d\d.*\1/s);
    for (const fact of [
      "Run 2",
      "It reached the limit given at its start",
      "$0.07",
      "2 messages $0.03, 3 people looked up $0.03, 1 inbox message read $0.01",
      "mara",
      "for at most 15 messages",
      "100 messages a day",
      "waited for X for",
    ])
      expect(main?.text).toContain(fact);
    expect(main?.links).toEqual(expect.arrayContaining([`/runs/${before}`, `/runs/${after}`, `/activity?run=${run}`]));
    expect(page).toContain('aria-label="3 recipients over time"');
    const counts = await textsAt(page, ".outcomes dd b");
    expect(counts.map(({ text }) => text)).toEqual(["1", "1", "0", "1"]);
  });
});

/** Events of a message of a campaign that the network accepted, with a link of the recipient's own if it has a code. */
function messagedIn(run_id: string, campaign: string | undefined, code?: string): NewEvent[] {
  const one = { attempt_id: `in ${run_id}`, run_id, recipient: ada };
  const links = code === undefined ? {} : { personal_links: [{ code, link: "go.example/all" }] };
  const data = { ...one, text: "Hi", variant: "A", day: "2026-11-20", ...(campaign === undefined ? {} : { campaign }) };
  return [
    { type: "DirectMessageAttempted", data: { ...data, ...links } },
    { type: "DirectMessageSent", data: { ...one, message_id: "m1", settled_by: "answer" } },
  ];
}

test("a click is a reaction to the message with the link that was clicked, and to no later one", async () => {
  const clock = { now: Date.parse("2026-11-20T10:00:00.000Z") };
  const harness = await openConsole({ logClock: () => clock.now });
  const [first, followUp] = [makeId(), makeId()];
  const rowIn = async (run: string, query = "") =>
    (await rowsOf(await pageAt(harness, `/runs/${run}${query}`))).map((row) => row.split(" | ").at(-1));
  await harness.append("outreach", started(first), ...messagedIn(first, undefined, "secret"));
  clock.now += 60_000;
  await harness.append("outreach", { type: "PersonalLinkClicked", data: { code: "secret" } });
  await harness.append("outreach", finished(first));
  clock.now += 86_400_000;
  await harness.append("outreach", started(followUp), ...messagedIn(followUp, "follow-up"));
  expect([await rowIn(first), await rowIn(followUp)]).toEqual([["clicked, 1 min after it"], ["–"]]);
  clock.now += 60_000;
  await harness.append("outreach", { type: "PersonalLinkClicked", data: { code: "secret" } });
  const late = { recipient: ada, message_id: "m2", received_at: "2026-11-20T10:05:00.000Z" };
  await harness.append("outreach", { type: "DirectMessageReceived", data: late });
  await harness.append("outreach", {
    type: "DirectMessagesSeen",
    data: { recipient: ada, seen_at: "2026-11-20T10:05:00.000Z" },
  });
  expect([await rowIn(first), await rowIn(followUp)]).toEqual([["clicked 2 times, 1 min after it"], ["–"]]);
  expect(await rowIn(first, "?as_of=4")).toEqual(["clicked, 1 min after it"]);
});

test("a run's page shows the message of its campaign, until the campaign is changed", async () => {
  const [common, own] = ["Hi {{name}}", "Did you find time, {{name}}?"];
  const harness = await openConsole({ env: { MESSAGE_TEMPLATE: common } });
  const [first, second] = [makeId(), makeId()];
  const campaign = { name: "follow-up", text: own, audience: {} };
  const begun = (run_id: string, text: string, more = {}): NewEvent => {
    const rules = { daily_limit: 100, timezone: "UTC", require_consent: true, template: parseTemplate(text).id };
    return { type: "RunStarted", data: { run_id, dry_run: false, rules, ...more } };
  };
  await harness.append(
    "outreach",
    { type: "CampaignCreated", data: campaign },
    begun(first, common),
    finished(first),
    begun(second, own, { campaign: "follow-up" }),
    { type: "CampaignChanged", data: { ...campaign, text: "Hello" } },
  );
  const messageAt = async (path: string) =>
    (await textsAt(await pageAt(harness, path), "#texts, pre.message")).map(({ text }) => text);
  expect(await messageAt("/runs/1")).toEqual(["Message", common]);
  expect(await messageAt("/runs/2?as_of=4")).toEqual(["follow-up", own]);
  expect(await messageAt("/runs/2")).toEqual([]);
});

test("a run for named recipients shows who waits for their turn, then who was not reached and why", async () => {
  const harness = await openConsole();
  const run_id = makeId();
  const requested = (recipient: { readonly username: string }): NewEvent => ({
    type: "RecipientRequested",
    data: { run_id, recipient },
  });
  await harness.append(
    "outreach",
    { type: "RunStarted", data: { run_id, dry_run: false, recipients: 2 } },
    ...[ada, bob, { username: "cyd" }].map(requested),
    ...messaged(run_id, ada, "sent"),
  );
  const rows = async () =>
    (await rowsOf(await pageAt(harness, `/runs/${run_id}`))).map((row) => row.replace(/\d\d:\d\d/, "TIME"));
  const sent = "@ada | Sent | TIME | A | –";
  expect(await rows()).toEqual([
    "@bob | On its way | TIME | – | requested, and not written to yet",
    "@cyd | On its way | TIME | – | requested, and not written to yet",
    sent,
  ]);
  const passed = (recipient: { readonly username: string }, reason: "held" | "stopped"): NewEvent => ({
    type: "RecipientNotReached",
    data: { run_id, recipient, reason },
  });
  await harness.append("outreach", passed(bob, "held"), passed({ username: "cyd" }, "stopped"), {
    type: "RunFinished",
    data: { run_id, reason: "stopped", ...counts, sent: 1 },
  });
  expect(await rows()).toEqual([
    sent,
    "@bob | Not reached | TIME | – | an operator has to read their reply first",
    "@cyd | Not reached | TIME | – | the run ended before: it was stopped",
  ]);
  expect((await textsAt(await pageAt(harness, `/runs/${run_id}`), "main"))[0]?.text).toContain(
    "for 2 named recipients",
  );
});

test("the address of a dry run's id leads to its page", async () => {
  const harness = await openConsole();
  const run = makeId();
  await harness.append(
    "outreach",
    { type: "RunStarted", data: { run_id: run, dry_run: true } },
    { type: "DryRunFinished", data: { run_id: run, reason: "completed", would_send: 1, would_skip: 0 } },
  );
  await harness.projector.until((await harness.store.head()).position);
  const answer = await ask(harness.app, `/runs/${run}`);
  expect([answer.status, answer.headers.get("location")]).toEqual([303, `/runs/dry/${run}`]);
});

test("a run is shown by its number on every page, also as of an earlier moment", async () => {
  const harness = await openConsole();
  const run = makeId();
  const ada = { id: "1001", username: "ada" };
  const message = { attempt_id: "a1", run_id: run, recipient: ada };
  await harness.append("outreach", started(makeId()), addedOf(ada, { basis: "opt_in" }), started(run));
  await harness.append(
    "outreach",
    {
      type: "DirectMessageAttempted",
      data: { ...message, text: "Hi", variant: "A", day: "2026-11-20", template: "t" },
    },
    { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } },
    finished(run),
    started(makeId()),
  );
  const linksAt = async (path: string) => {
    const page = await pageAt(harness, path);
    return [...page.matchAll(new RegExp(`<a href="/runs/${run}[^>]*>(.*?)</a>`, "g"))].map(([, text = ""]) =>
      text.replaceAll(/<[^>]+>/g, ""),
    );
  };
  for (const moment of ["", "as_of=6"]) {
    for (const path of ["/", "/people/1001", "/activity?show=everything", "/results?by=run"]) {
      const named = await linksAt(`${path}${path.includes("?") ? "&" : "?"}${moment}`);
      expect([path, ...new Set(named.map((text) => text.replace(/^run /i, "")))]).toEqual([path, "2"]);
    }
    const [title] = await textsAt(await pageAt(harness, `/runs/${run}?${moment}`), "h1");
    expect(title?.text).toBe("Run 2 Finished");
  }
});

test("a long run continues on the next page", async () => {
  const harness = await openConsole();
  const run = makeId();
  const people = Array.from({ length: 150 }, (_, number) => skipped(run, `person_${number}`));
  await harness.append("outreach", started(run), ...people, finished(run));
  const path = `/runs/${run}`;
  const first = await pageAt(harness, path);
  expect(await rowsOf(first)).toHaveLength(100);
  expect(first).toContain(`<a href="${path}?from=102">More recipients</a>`);
  expect(first.length).toBeLessThan(200_000);
  const last = await pageAt(harness, `${path}?from=102`);
  expect(await rowsOf(last)).toHaveLength(50);
  expect(last).not.toContain("More recipients");
  expect(last).toContain(`<a href="${path}">The first</a>`);
});

test("an unknown run has a page that says so, and an invalid id has none", async () => {
  const harness = await openConsole();
  await harness.append("outreach", started(makeId()));
  expect(await pageAt(harness, `/runs/${makeId()}`, 404)).toContain("The log has no run with this id.");
  expect((await ask(harness.app, "/runs/x")).status).toBe(404);
});

describe("the list of runs", () => {
  const rules = { daily_limit: 100, timezone: "UTC", require_consent: true, template: "t1" };

  test("shows each run's start, caller, template, counts and end", async () => {
    const harness = await openConsole();
    const [first, dry, dead, current] = [makeId(), makeId(), makeId(), makeId()];
    expect(await pageAt(harness, "/runs")).toContain("There was no run yet.");
    await harness.append(
      "outreach",
      { type: "RunStarted", data: { run_id: first, dry_run: false, rules: { ...rules, template_name: "Autumn <b>" } } },
      { type: "RunFinished", data: { run_id: first, reason: "stopped", ...counts, sent: 1_234, failed: 2 } },
      { type: "RunStarted", data: { run_id: dry, dry_run: true, rules } },
      { type: "DryRunFinished", data: { run_id: dry, reason: "completed", would_send: 9, would_skip: 4 } },
      started(dead),
      { type: "RunAbandoned", data: { run_id: dead, ...counts } },
    );
    const begun = makeEvent("RunStarted", makeId(), { run_id: current, dry_run: false }, { caller: "anonymous" });
    await harness.store.append("outreach", [begun]);
    await harness.append("outreach", skipped(current, "ada"));
    const page = await pageAt(harness, "/runs");
    const time = /\w{3},? \d+ \w{3},? \d\d:\d\d/;
    const week = /^This week, \d+ [a-z]+ – \d+ [a-z]+/i;
    expect((await rowsOf(page)).map((row) => row.replace(time, "TIME").replace(week, "WEEK: "))).toEqual([
      "WEEK: 3 runs · 1,234 sent, 1 skipped, 2 failed",
      "Run 3 | TIME | – | a caller without a token | 0 | 1 | 0 | – | – | In progress",
      "Run 2 | TIME | – | – | 0 | 0 | 0 | 0 s | – | Broke off",
      "Dry run | TIME | t1 | – | – | – | – | 0 s | – | Would send 9",
      "Run 1 | TIME | Autumn &lt;b> | – | 1,234 | 0 | 2 | 0 s | – | Stopped",
    ]);
    const links = (await textsAt(page, "tbody th")).flatMap((head) => head.links);
    expect(links).toEqual([`/runs/${current}`, `/runs/${dead}`, `/runs/dry/${dry}`, `/runs/${first}`]);
    expect((await textsAt(page, "main"))[0]?.text).toContain("3 runs and 1 dry run.");
    expect(await pageAt(harness, "/")).toContain('<a href="/runs">All runs</a>');
  });

  test("is sorted by its columns, continues on a next page, and exists as of a moment", async () => {
    const harness = await openConsole();
    const ids = Array.from({ length: 52 }, () => makeId());
    const all = ids.flatMap((run_id, at): NewEvent[] => [
      started(run_id),
      { type: "RunFinished", data: { run_id, reason: "completed", ...counts, sent: at % 7 } },
    ]);
    await harness.append("outreach", ...all);
    const runsAt = async (path: string) => {
      const page = await pageAt(harness, path);
      const more = /<a href="([^"]+)">More runs</.exec(page)?.[1]?.replaceAll("&amp;", "&");
      return { names: (await textsAt(page, "tbody th a")).map(({ text }) => text), more };
    };
    const first = await runsAt("/runs");
    expect([first.names.length, first.names[0], first.names.at(-1)]).toEqual([50, "Run 52", "Run 3"]);
    expect(await runsAt(first.more ?? "")).toEqual({ names: ["Run 2", "Run 1"], more: undefined });
    const sorted = await runsAt("/runs?sort=sent&order=descending");
    expect(sorted.names.slice(0, 2)).toEqual(["Run 7", "Run 14"]);
    expect((await runsAt("/runs?as_of=4")).names).toEqual(["Run 2", "Run 1"]);
  });
});
