// On the memory harness.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { ROWS_SHOWN } from "../../src/console/pages/dry-run.tsx";
import type { DryRun } from "../../src/outreach/execute-run.ts";
import { ask, openApp, post, REPORT, type AppHarness, type Given } from "../harness/memory/app.ts";
import { openConsole, pageAt, rowsOf } from "./pages.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const STARTED = { type: "RunStarted", data: { run_id: "run-1", dry_run: false } } as const;
const COUNTS = { sent: 1_234, skipped: 5, failed: 2, in_doubt: 1 };

/** Submits a form of the overview as a browser does. */
async function send(harness: AppHarness, action: string, fields: Record<string, string> = {}): Promise<Response> {
  const form_token = /name="form_token" value="([^"]+)"/.exec(await pageAt(harness, "/"))?.[1] ?? "";
  const body = new URLSearchParams({ form_token, back: "/", ...fields }).toString();
  return post(harness.app, `/console/run/${action}`, body, { headers: FORM });
}

/** The overview that a form redirects to, with its notice. */
async function backAt(harness: AppHarness, answer: Response): Promise<string> {
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  return (await ask(harness.app, "/", { headers: { cookie } })).text();
}

async function openAuthorized(given: Given = {}): Promise<AppHarness> {
  const harness = await openConsole(given);
  await harness.authorize();
  return harness;
}

describe("the run in progress", () => {
  test("shows how far it is, what it waits for, and for how long", async () => {
    const harness = await openAuthorized();
    harness.now = Date.now();
    const until = new Date(harness.now + 900_000).toISOString();
    const paused = { type: "RunPaused", data: { run_id: "run-1", reason: "rate_limited", until } } as const;
    await harness.append("outreach", STARTED, paused);
    const page = await pageAt(harness, "/");
    expect(page).toContain("0 <small>sent, of at most 100</small>");
    expect(page).toMatch(/<progress max="100" value="0" aria-label="[^"]+">/);
    expect(page).toContain(`It waits for the network's rate limit, and continues at <time datetime="${until}"`);
    expect(page).not.toContain("/console/run/dry");
    harness.now += 1_000_000;
    expect(await pageAt(harness, "/")).not.toContain("It waits");
  });

  test("is stopped by a form that asks once, and says since when it is asked to stop", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", STARTED);
    expect(await pageAt(harness, "/")).toMatch(/<summary>Stop run<\/summary>.*name="run_id" value="run-1"/);
    const page = await backAt(harness, await send(harness, "stop", { run_id: "run-1" }));
    expect(page).toContain("The run is stopping: it sends nothing more.");
    expect(page).toContain("It was asked to stop <time");
    expect(page).not.toContain("Stop run");
    const asked = await Array.fromAsync(harness.store.read({ types: ["RunStopRequested"] }));
    expect(asked.map(({ data }) => data)).toEqual([{ run_id: "run-1" }]);
  });

  test("that has ended meanwhile is not stopped, and neither is the next one", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", STARTED);
    const page = await backAt(harness, await send(harness, "stop", { run_id: "run-0" }));
    expect(page).toContain('role="alert">No run is in progress, or not the one named.');
    expect(await Array.fromAsync(harness.store.read({ types: ["RunStopRequested"] }))).toEqual([]);
  });
});

describe("the sending window", () => {
  const env = { SEND_WINDOW: "Mon-Fri 09:00-17:00", QUOTA_TIMEZONE: "Europe/Berlin" };

  test("is shown with what it is now, and until when", async () => {
    const harness = await openAuthorized({ env });
    harness.now = Date.parse("2030-01-07T12:00:00Z");
    const open = '<bdi>Europe/Berlin</bdi>. The window is open there until <time datetime="2030-01-07T16:00:00.000Z"';
    expect(await pageAt(harness, "/")).toContain(`Messages go out <bdi>Mon-Fri 09:00-17:00</bdi> in ${open}`);
    harness.now = Date.parse("2030-01-11T16:00:00Z");
    expect(await pageAt(harness, "/")).toContain(
      'The window is closed there until <time datetime="2030-01-14T08:00:00.000Z"',
    );
    expect(await pageAt(await openAuthorized(), "/")).not.toContain("Messages go out");
  });

  test("is why the last run ended, and a run waits", async () => {
    const harness = await openAuthorized({ env });
    harness.now = Date.now();
    const until = new Date(harness.now + 900_000).toISOString();
    const ended = { run_id: "run-1", reason: "window_closed", until, ...COUNTS } as const;
    await harness.append("outreach", STARTED, { type: "RunFinished", data: ended });
    expect(await pageAt(harness, "/")).toContain(
      `the sending window is closed for the other recipients until <time datetime="${until}"`,
    );
    const narrow = { type: "RunStarted", data: { run_id: "run-2", dry_run: false, limit: 20, variant: "B" } } as const;
    const paused = { type: "RunPaused", data: { run_id: "run-2", reason: "window_closed", until } } as const;
    await harness.append("outreach", narrow, paused);
    const page = await pageAt(harness, "/");
    expect(page).toContain("It was started with at most 20 messages for variant B.");
    expect(page).toContain("0 <small>sent, of at most 20</small>");
    expect(page).toContain("It waits for the sending window to open, and continues at");
  });
});

describe("without a run", () => {
  test("the overview says how the last one ended", async () => {
    const harness = await openAuthorized();
    expect(await pageAt(harness, "/")).toContain("There was none yet.");
    const ended = { type: "RunFinished", data: { run_id: "run-1", reason: "credits_depleted", ...COUNTS } } as const;
    await harness.append("outreach", STARTED, ended);
    const page = await pageAt(harness, "/");
    expect(page).toContain("1,234 <small>sent by the last one</small>");
    expect(page).toContain("5 skipped, 2 failed, 1 in doubt.");
    expect(page).toMatch(
      /Ended <time [^>]+>[^<]+<\/time>: the balance at X is empty\. <a href="\/runs\/run-1">Run <bdi title="run-1">1<\/bdi><\/a>/,
    );
    await harness.append("outreach", STARTED, { type: "RunAbandoned", data: { run_id: "run-1", ...COUNTS } });
    expect(await pageAt(harness, "/")).toContain(": its process died.");
  });

  test("a run is started, and not waited for", async () => {
    const harness = await openAuthorized();
    harness.triggered = { kind: "started", run_id: "run-1", done: new Promise(() => {}) };
    expect(await backAt(harness, await send(harness, "start"))).toContain("The run has started.");
    expect(harness.triggers).toMatchObject([{ dryRun: false, metadata: { caller: "anonymous" } }]);
  });

  test.each([
    ["running", { kind: "running", run_id: "run-7" }, {}, "another one is in progress", "/runs/run-7"],
    ["the day is used up", { kind: "daily_limit_reached" }, {}, "Today&#39;s 100 messages are used up", "/"],
    ["not authorized", { kind: "not_authorized" }, {}, "No X account is authorized.", "/social/auth"],
    ["no template", undefined, { hasTemplate: false }, "MESSAGE_TEMPLATE is not set.", "/setup"],
  ] as const)("what is refused is said, with a way on: %s", async (_what, triggered, given, words, nextStep) => {
    const harness = await openAuthorized(given);
    if (triggered !== undefined) harness.triggered = triggered;
    const page = await backAt(harness, await send(harness, "start"));
    const notice = /<section class="notice fault"[^>]*><p role="alert">(.*?)<\/p>/.exec(page)?.[1];
    expect(notice?.replaceAll("'", "&#39;")).toContain(words);
    expect(notice).toContain(`<a href="${nextStep}">`);
  });
});

describe("a dry run", () => {
  const found = (sends: number, skips: number): DryRun & { estimate: typeof REPORT.usage } => ({
    reason: "completed",
    would_send: Array.from({ length: sends }, (_, nth) => {
      const recipient = { id: String(nth), username: `user_${nth}` };
      return { recipient, text: nth === 0 ? "Hi <b>" : "x".repeat(10_000), variant: "A" };
    }),
    would_skip: Array.from({ length: skips }, (_, nth) => ({
      recipient: { username: `other_${nth}` },
      reason: nth === 0 ? "suppressed" : "no_consent",
    })),
    variants: [],
    estimate: { ...REPORT.usage, usd: 1.5 },
  });
  const finding = (harness: AppHarness, preview: ReturnType<typeof found>): void => {
    harness.triggered = { kind: "started", run_id: "run-1", done: Promise.resolve({ ...REPORT, preview }) };
  };

  test("is answered with a page of who would get what, who not and why, and what it costs", async () => {
    const harness = await openAuthorized();
    finding(harness, found(2, 3));
    const head = await harness.store.head();
    const answer = await send(harness, "dry");
    const page = await answer.text();
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(await harness.store.head()).toEqual(head);
    expect(harness.triggers).toMatchObject([{ dryRun: true }]);
    expect(page).toContain("A run would write to <b>2 people</b> now and skip 3 people.");
    expect(page).toContain("costs at most <b>1.50 USD</b>. This dry run cost at most 0.10 USD");
    const rows = await rowsOf(page);
    expect(rows[0]).toBe("@user_0 | A | Hi &lt;b>");
    expect(rows[1]).toMatch(/^@user_1 \| A \| x{500}… \(10,000 characters\)$/);
    expect(rows.slice(2)).toEqual(["@other_0 | suppressed", "@other_1 | no consent", "@other_2 | no consent"]);
    expect(page).toContain("<li>no consent: 2</li>");
    // The page cannot be requested again, so it does not follow the log.
    expect(page).not.toContain("data-position");
  });

  test("shows the line breaks of a text as they will arrive, and a sign for what would not be seen", async () => {
    const harness = await openAuthorized();
    const one = found(1, 0);
    const would_send = one.would_send.map((send) => ({ ...send, text: "Hi\n\n\u001b[2Jyou\u202e" }));
    finding(harness, { ...one, would_send });
    const page = await (await send(harness, "dry")).text();
    expect(page).toContain('<bdi class="message">Hi\n\n␛[2Jyou&lt;U+202E></bdi>');
    expect(readFileSync(new URL("../../src/console/console.css", import.meta.url), "utf8")).toContain(
      ".message {\n  white-space: pre-wrap;",
    );
  });

  test("leads to the run, which says how many messages at most it sends, and from which account", async () => {
    const harness = await openAuthorized();
    finding(harness, found(2, 0));
    const page = await (await send(harness, "dry")).text();
    expect(page).toContain('action="/console/run/start"');
    expect(page).toContain(
      "as <bdi>@we</bdi>: to 2 people, and to others who become due by then. It sends at most 100, the rest",
    );
    finding(harness, found(0, 1));
    const empty = await (await send(harness, "dry")).text();
    expect(empty).toContain("No recipient is due");
    expect(empty).not.toContain("/console/run/start");
  });

  test("for some recipients leads to the run for the same ones", async () => {
    const env = { RECIPIENT_SOURCES: "list,followers", MESSAGE_TEMPLATE: "Hi\n---\nHello" };
    const harness = await openAuthorized({ env });
    const page = await pageAt(harness, "/");
    for (const name of ["limit", "variant", "basis", "source"]) expect(page).toContain(`name="${name}"`);
    finding(harness, found(2, 0));
    const selection = { limit: "20", variant: "B", basis: "opt_in", source: "" };
    const dry = await (await send(harness, "dry", selection)).text();
    expect(harness.triggers).toMatchObject([{ dryRun: true, selection: { limit: 20, variant: "B", basis: "opt_in" } }]);
    expect(dry).toContain("A run with at most 20 messages for variant B for recipients with the basis opt in would");
    expect(dry).toContain("It sends at most 20, its limit.");
    for (const field of ['name="limit" value="20"', 'name="variant" value="B"', 'name="basis" value="opt_in"']) {
      expect(dry).toContain(field);
    }
    harness.triggered = { kind: "started", run_id: "run-1", done: new Promise(() => {}) };
    await send(harness, "start", { limit: "20", variant: "B" });
    expect(harness.triggers.at(-1)).toMatchObject({ dryRun: false, selection: { limit: 20, variant: "B" } });
    expect(await backAt(harness, await send(harness, "start", { limit: "many" }))).toContain(
      "does not match its schema",
    );
  });

  test("of very many people shows the first, and says how many there are", async () => {
    const harness = await openAuthorized();
    finding(harness, found(100, 20_000));
    const page = await (await send(harness, "dry")).text();
    expect(await rowsOf(page)).toHaveLength(100 + ROWS_SHOWN);
    expect(page).toContain("The first 100 of 20,000");
    expect(page.length).toBeLessThan(200_000);
  });

  test("that is refused leads back, with a notice", async () => {
    const harness = await openAuthorized();
    harness.triggered = { kind: "running", run_id: undefined };
    expect(await backAt(harness, await send(harness, "dry"))).toContain("another one is in progress");
  });
});

test("an operator who may only look finds no form that starts or stops anything", async () => {
  await using harness = await openApp();
  const answer = await post(harness.app, "/console/run/start", "form_token=x&back=/", { headers: FORM });
  expect(answer.status).toBe(401);
  expect(harness.triggers).toEqual([]);
});
