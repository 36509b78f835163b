// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { makeEvent } from "../../events/event-types-and-codec.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { ask, openApp, post, REPORT, type AppHarness, type Given } from "../harness/in-process/app.ts";
import type { SkipReason } from "../../events/outreach.ts";
import { confirmStart, openConsole, pageAt, person, rowsOf, textsAt } from "./open-console.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const STARTED = { type: "RunStarted", data: { run_id: "run-1", dry_run: false } } as const;
const ATTEMPT = { attempt_id: makeId(), run_id: "run-1", recipient: { id: "7", username: "ada" } };
const COUNTS = { sent: 1_234, skipped: 5, failed: 2, in_doubt: 1 };

/** Submits a form of the overview, as a browser does, to start or stop a run. */
async function send(harness: AppHarness, action: string, fields: Record<string, string> = {}): Promise<Response> {
  const form_token = /name="form_token" value="([^"]+)"/.exec(await pageAt(harness, "/"))?.[1] ?? "";
  const body = new URLSearchParams({ form_token, back: "/", ...fields }).toString();
  return post(harness.app, `/console/run/${action}`, body, { headers: FORM });
}

/** Follows the redirect with which the service answers a form. Returns the overview, which then contains a notice. */
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
  test("is shown with its progress, and what it waits for until when", async () => {
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

  test("keeps its limit while a message is on its way", async () => {
    const harness = await openAuthorized();
    harness.now = Date.now();
    await harness.append("outreach", STARTED, {
      type: "DirectMessageAttempted",
      data: {
        ...ATTEMPT,
        text: "Hi",
        template: "t1",
        variant: "A",
        day: new Date(harness.now).toISOString().slice(0, 10),
      },
    });
    expect(await pageAt(harness, "/")).toContain("0 <small>sent, of at most 100</small>");
  });

  test("is stopped by a form, and shows since when it was asked to stop", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", STARTED);
    expect(await pageAt(harness, "/")).toMatch(/aria-haspopup="dialog">Stop run<\/a>.*name="run_id" value="run-1"/);
    const page = await backAt(harness, await send(harness, "stop", { run_id: "run-1" }));
    expect(page).toContain("The run is stopping: it sends nothing more.");
    expect(page).toContain("It was asked to stop <time");
    expect(page).not.toContain("Stop run");
    const asked = await Array.fromAsync(harness.store.read({ types: ["RunStopRequested"] }));
    expect(asked.map(({ data }) => data)).toEqual([{ run_id: "run-1" }]);
  });

  test("is not stopped by a form for another run", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", STARTED);
    const page = await backAt(harness, await send(harness, "stop", { run_id: "run-0" }));
    expect(page).toContain('role="alert">No run is in progress, or not the one named.');
    expect(await Array.fromAsync(harness.store.read({ types: ["RunStopRequested"] }))).toEqual([]);
  });
});

describe("the sending window", () => {
  const env = { SEND_WINDOW: "Mon-Fri 09:00-17:00", QUOTA_TIMEZONE: "Europe/Berlin" };

  test("is shown as open or closed, until when", async () => {
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

  test("is shown as the reason why a run ended or waits", async () => {
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

/** HTML for one message in doubt: a link to the page where an operator decides about it. */
const DOUBT = '<a href="/attention">1 in doubt</a>';

describe("the overview without a run", () => {
  test("shows how the last run ended", async () => {
    const harness = await openAuthorized();
    expect(await pageAt(harness, "/")).toContain("There was none yet.");
    const ended = { type: "RunFinished", data: { run_id: "run-1", reason: "credits_depleted", ...COUNTS } } as const;
    await harness.append("outreach", STARTED, ended);
    const page = await pageAt(harness, "/");
    expect(page).toContain("1,234 <small>sent by the last one</small>");
    expect(page).toContain(`5 skipped, 2 failed, ${DOUBT}.`);
    expect(page).toMatch(
      /Ended <time [^>]+>[^<]+<\/time>: the balance at X is empty\. <a href="\/runs\/run-1"><bdi title="run-1">Run 1<\/bdi><\/a>/,
    );
    await harness.append("outreach", STARTED, { type: "RunAbandoned", data: { run_id: "run-1", ...COUNTS } });
    expect(await pageAt(harness, "/")).toContain(": its process died.");
  });

  test("counts a message in doubt as sent once an operator has decided that it arrived", async () => {
    const harness = await openAuthorized();
    const attempted = { ...ATTEMPT, text: "Hi", template: "t1", variant: "A", day: "2026-11-20" };
    const counts = { sent: 14, skipped: 4, failed: 1, in_doubt: 1 };
    await harness.append(
      "outreach",
      STARTED,
      { type: "DirectMessageAttempted", data: attempted },
      { type: "DirectMessageInDoubt", data: { ...ATTEMPT, detail: "no answer" } },
      { type: "RunFinished", data: { run_id: "run-1", reason: "limit_reached", ...counts } },
    );
    expect(await pageAt(harness, "/")).toContain(`4 skipped, 1 failed, ${DOUBT}.`);
    await harness.append("outreach", {
      type: "DirectMessageSent",
      data: { ...ATTEMPT, settled_by: "operator", why: "she answered" },
    });
    const page = await pageAt(harness, "/");
    expect(page).toContain("15 <small>sent by the last one</small>");
    expect(page).toContain("4 skipped, 1 failed, 0 in doubt.");
  });

  test("counts people contacted by an earlier run apart from the skipped ones, as the pages of runs do", async () => {
    const harness = await openAuthorized();
    const skipped = (reason: SkipReason) => {
      return { type: "DirectMessageSkipped", data: { run_id: "run-1", recipient: { id: "7" }, reason } } as const;
    };
    const ended = { run_id: "run-1", reason: "completed", sent: 0, skipped: 3, failed: 0, in_doubt: 0 } as const;
    await harness.append("outreach", STARTED, skipped("already_contacted"), skipped("already_contacted"));
    await harness.append("outreach", skipped("no_consent"), { type: "RunFinished", data: ended });
    const page = await pageAt(harness, "/");
    const [totals] = await textsAt(page, "dl.figures dd.quiet");
    expect(totals?.text).toContain("1 skipped, 2 contacted earlier, 0 failed");
    expect((await textsAt(page, ".card p")).map(({ text }) => text)).toContain(
      "1 skipped, 2 contacted earlier, 0 failed, 0 in doubt.",
    );
    expect((await textsAt(page, ".charts .legend")).map(({ text }) => text)[0]).toContain("skipped 1");
    expect(await rowsOf(await pageAt(harness, "/runs"))).toEqual([
      expect.stringContaining("0 sent, 1 skipped, 0 failed"),
      expect.stringContaining("| 0 | 1 | 0 | 2 |"),
    ]);
    const counted = await (await ask(harness.app, "/social/stats")).json();
    expect(counted).toMatchObject({ sent: 0, skipped: 3, failed: 0 });
    const { periods } = (await (await ask(harness.app, "/social/stats?by=day")).json()) as { periods: object[] };
    expect(Object.keys(periods.at(-1)!)).toEqual(["start", "sent", "skipped", "failed", "clicks", "suspected", "bots"]);
  });

  test("starts a run without waiting for its end", async () => {
    const harness = await openAuthorized();
    harness.triggered = { kind: "started", run_id: "run-1", done: new Promise(() => {}) };
    expect(await backAt(harness, await send(harness, "start"))).toContain("The run has started.");
    expect(harness.triggers).toMatchObject([{ dryRun: false, metadata: { caller: "anonymous" } }]);
  });

  test.each([
    ["running", { kind: "running", run_id: "run-7" }, {}, "another one is in progress", "/runs/run-7"],
    ["the daily limit is reached", { kind: "daily_limit_reached" }, {}, "Today&#39;s 100 messages are used up", "/"],
    ["not authorized", { kind: "not_authorized" }, {}, "No X account is authorized.", "/social/auth"],
    ["no template", undefined, { hasTemplate: false }, "MESSAGE_TEMPLATE is not set.", "/setup"],
  ] as const)(
    "shows why a start is refused, with a link to the next step: %s",
    async (_what, triggered, given, words, nextStep) => {
      const harness = await openAuthorized(given);
      if (triggered !== undefined) harness.triggered = triggered;
      const page = await backAt(harness, await send(harness, "start"));
      const notice = /<section class="notice fault"[^>]*><p role="alert">(.*?)<\/p>/.exec(page)?.[1];
      expect(notice?.replaceAll("'", "&#39;")).toContain(words);
      expect(notice).toContain(`<a href="${nextStep}">`);
    },
  );
});

test("the overview leaves out a day whose news are all beyond its limit, instead of calling it empty", async () => {
  const midnight = Date.parse("2030-01-08T00:00:00Z");
  let now = midnight - 3_600_000;
  const harness = await openAuthorized({ logClock: () => now });
  const suppressed = (at: number) => {
    const recipient = { id: `${at}`, username: `user_${at}` };
    return { type: "RecipientSuppressed", data: { recipient, reason: "by_hand" } } as const;
  };
  await harness.append("outreach", suppressed(0));
  for (let at = 1; at <= 12; at++) {
    now = midnight + at * 16 * 60_000;
    await harness.append("outreach", suppressed(at));
  }
  harness.now = now;
  const days = await textsAt(await pageAt(harness, "/"), ".day");
  expect(days.map(({ text }) => text.includes("Nothing."))).toEqual([false]);
});

/** Returns the buttons of the page that cannot be pressed, and the links beside them. */
async function disabledAt(page: string, selector: string) {
  const shown = await textsAt(page, `${selector} button[disabled]`);
  return [shown.map(({ text }) => text), await textsAt(page, `${selector} small`)];
}

describe("a button whose action would be refused is disabled, with the reason", () => {
  const dryRun = (limit: number) => [
    { type: "RunStarted", data: { run_id: "run-1", dry_run: true } } as const,
    {
      type: "DryRunFinished",
      data: { run_id: "run-1", reason: "completed", would_send: limit, would_skip: 0 },
    } as const,
  ];
  const link = (label: string, href: string) => ({ label, href });
  const AUTHORIZE = `/social/auth?${new URLSearchParams({ back: "/?confirm=start-run" })}`;

  test.each([
    ["there is no account", "none", link("No X account is authorized. Authorize an X account", AUTHORIZE)],
    ["the grant is dead", "dead", link("X no longer accepts our authorization. Authorize again", AUTHORIZE)],
    ["the X app is gone", "good", link("The X app is not configured. What to set up", "/setup")],
  ] as const)("if %s", async (_what, grant, { label, href }) => {
    const harness = await openConsole({ env: { X_CLIENT_ID: grant === "good" ? "" : "app" } });
    const dead = { user_id: "9001", reason: "invalid_grant", dead: true } as const;
    if (grant !== "none") await harness.authorize();
    if (grant === "dead") await harness.append("account", { type: "TokenRefreshFailed", data: dead });
    await harness.append("outreach", ...dryRun(3), person("ada"));
    const page = await pageAt(harness, "/");
    expect(await disabledAt(page, "[aria-labelledby=run]")).toEqual([
      ["Start run…", "Dry run"],
      [{ text: label, links: [href] }],
    ]);
    expect(page).not.toContain('action="/console/run/start"');
    const [elsewhere = ""] = href.split("?");
    const contact = await pageAt(harness, "/people/@ada");
    expect(await disabledAt(contact, ".actions")).toEqual([["Write now"], [{ text: label, links: [elsewhere] }]]);
    expect(await disabledAt(await pageAt(harness, "/runs"), "form")).toEqual([
      ["Dry run"],
      [{ text: label, links: [elsewhere] }],
    ]);
  });

  test("if the day's messages are used up, which a dry run does not need", async () => {
    const harness = await openAuthorized({ env: { DAILY_LIMIT: "1" } });
    harness.now = Date.now();
    const attempted = { ...ATTEMPT, text: "Hi", variant: "A", day: new Date(harness.now).toISOString().slice(0, 10) };
    await harness.append(
      "outreach",
      ...dryRun(3),
      { type: "DirectMessageAttempted", data: attempted },
      { type: "DirectMessageSent", data: { ...ATTEMPT, settled_by: "answer" } },
    );
    const found = await disabledAt(await pageAt(harness, "/"), "[aria-labelledby=run]");
    const reason = { text: expect.stringMatching(/^Today's messages are used up until .+\.$/) };
    expect(found).toMatchObject([["Start run…"], [reason, {}]]);
  });

  test("if the sending window is closed, or a run is in progress", async () => {
    const now = Date.parse("2030-01-12T12:00:00Z");
    const env = { SEND_WINDOW: "Mon-Fri 09:00-17:00", SEND_WINDOW_CLOSED: "end" };
    const harness = await openAuthorized({ env, logClock: () => now });
    harness.now = now;
    await harness.append("outreach", ...dryRun(3));
    const closed = await disabledAt(await pageAt(harness, "/"), "[aria-labelledby=run]");
    const reason = { text: expect.stringMatching(/^The sending window is closed until /) };
    expect(closed).toMatchObject([["Start run…"], [reason, {}]]);
    await harness.append("outreach", { type: "RunStarted", data: { run_id: "run-2", dry_run: false } });
    const running = await disabledAt(await pageAt(harness, "/runs/dry/run-1"), ".dry");
    expect(running).toMatchObject([
      ["Start run…", "Dry run"],
      [{ text: "A run is in progress. The run", links: ["/runs/run-2"] }],
    ]);
  });
});

describe("a dry run", () => {
  test("leads to its page, and takes the selection of the form", async () => {
    const env = { RECIPIENT_SOURCES: "list,followers", MESSAGE_TEMPLATE: "Hi\n---\nHello" };
    const harness = await openAuthorized({ env });
    const page = await pageAt(harness, "/");
    for (const name of ["limit", "variant", "basis", "source"]) expect(page).toContain(`name="${name}"`);
    harness.triggered = { kind: "started", run_id: "run-1", done: Promise.resolve(REPORT) };
    const answer = await send(harness, "dry", { limit: "20", variant: "B", basis: "opt_in", source: "" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/runs/dry/run-1"]);
    expect(harness.triggers).toMatchObject([{ dryRun: true, selection: { limit: 20, variant: "B", basis: "opt_in" } }]);
  });

  test("says beside its button what it costs at most, for the people that the log does not rule out", async () => {
    const harness = await openAuthorized();
    const text = async () => (await textsAt(await pageAt(harness, "/"), "form.action small"))[0]?.text;
    expect(await text()).toBe(
      "It sends nothing, and looks people up only until the day's quota is filled. X charges at most $0.00 for 0 look-ups, and at most $0.02 for each message that it reads.",
    );
    await harness.append("outreach", person("ada"), person("bob"), person("gus", "none"), person("eve"), {
      type: "DirectMessageSkipped",
      data: { run_id: "run-1", recipient: { username: "eve" }, reason: "protected" },
    });
    expect(await text()).toContain("at most $0.02 for 2 look-ups");
    // With a second open campaign, the page counts each recipient who may get any message, as an upper bound. So `gus`,
    // who gave no consent, counts too: three look-ups, not two.
    const spring = { name: "spring", text: "Hi", audience: {} };
    await harness.append("outreach", { type: "CampaignCreated", data: spring });
    expect(await text()).toContain("at most $0.03 for 3 look-ups");
    const open = await openAuthorized({ env: { RECIPIENT_SOURCES: "list,followers" } });
    const [shown] = await textsAt(await pageAt(open, "/runs"), "form.action small");
    expect(shown?.text).toEndWith("for each message that it reads and each person that it finds at X.");
  });

  test("is offered for the variants of each campaign's own message, and takes the chosen one", async () => {
    const harness = await openAuthorized({ env: { MESSAGE_TEMPLATE: "Hi\n---\nHello\n---\nHey" } });
    const campaign = (name: string, text: string) =>
      ({ type: "CampaignCreated", data: { name, text, audience: {} } }) as const;
    await harness.append("outreach", campaign("spring", "Hi\n---\nHo"), campaign("tea", "Tea?"));
    const page = await pageAt(harness, "/");
    expect(page).not.toContain('name="variant"');
    const words = (await textsAt(page, "select[name=campaign] option")).map(({ text }) => text);
    const [own, other] = [
      ["A", "B", "C"],
      ["A", "B"],
    ].map((all) => all.map((label) => `, only variant ${label}`));
    expect(words).toEqual([
      "default",
      ...own!.map((only) => `default${only}`),
      "spring",
      ...other!.map((only) => `spring${only}`),
      "tea",
    ]);
    harness.triggered = { kind: "started", run_id: "run-1", done: Promise.resolve(REPORT) };
    const choices = [...page.matchAll(/<option value="((?:default|spring|tea)[^"]*)"/g)].map(([, value]) => value!);
    for (const choice of choices) {
      const answer = await send(harness, "dry", { campaign: choice });
      expect([choice, answer.headers.get("location")]).toEqual([choice, "/runs/dry/run-1"]);
    }
    expect(harness.triggers.map(({ selection }) => selection)).toEqual([
      {},
      { variant: "A" },
      { variant: "B" },
      { variant: "C" },
      { campaign: "spring" },
      { campaign: "spring", variant: "A" },
      { campaign: "spring", variant: "B" },
      { campaign: "tea" },
    ]);
  });

  test("is followed by a run for the same selection", async () => {
    const harness = await openAuthorized();
    harness.triggered = { kind: "started", run_id: "run-1", done: new Promise(() => {}) };
    await send(harness, "start", { limit: "20", variant: "A" });
    expect(harness.triggers.at(-1)).toMatchObject({ dryRun: false, selection: { limit: 20, variant: "A" } });
    expect(await backAt(harness, await send(harness, "start", { limit: "many" }))).toContain(
      "The field limit: Expected integer.",
    );
  });

  test("is named on the overview with what it found, beside the button that starts the run", async () => {
    const harness = await openAuthorized();
    const run_id = "run-1";
    const dry = makeEvent("RunStarted", makeId(), { run_id, dry_run: true, limit: 62 }, { caller: "mara" });
    await harness.store.append("outreach", [dry]);
    const skips = { already_contacted: 571, no_consent: 7 };
    await harness.append("outreach", {
      type: "DryRunFinished",
      data: { run_id, reason: "completed", would_send: 62, would_skip: 578, skips },
    });
    const page = (await pageAt(harness, "/")).replaceAll(/<\/?bdi>/g, "");
    expect(page).toContain(
      'mara made a <a href="/runs/dry/run-1">dry run</a>: 62 would get a message, 7 would be skipped, 571 were contacted earlier.',
    );
    expect(page).toContain("Start run…</button>");
  });

  test("returns with a notice if it is refused", async () => {
    const harness = await openAuthorized();
    harness.triggered = { kind: "running", run_id: undefined };
    expect(await backAt(harness, await send(harness, "dry"))).toContain("another one is in progress");
  });
});

describe("the start of a run", () => {
  const SPRING = { type: "CampaignCreated", data: { name: "spring", text: "Hi\n---\nHo", audience: {} } } as const;
  const dryRun = (would_send: number, selection: { campaign?: string; limit?: number } = {}) => [
    { type: "RunStarted", data: { run_id: "dry-1", dry_run: true, ...selection } } as const,
    { type: "DryRunFinished", data: { run_id: "dry-1", reason: "completed", would_send, would_skip: 1 } } as const,
  ];
  const ran = (sent: number) => {
    const counts = { sent, skipped: 0, failed: 0, in_doubt: 0 };
    return [STARTED, { type: "RunFinished", data: { run_id: "run-1", reason: "stopped", ...counts } } as const];
  };

  test("is for what the form beside the button shows, also after a dry run of another campaign", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", SPRING, ...dryRun(41, { campaign: "spring" }));
    const [line] = (await textsAt(await pageAt(harness, "/"), ".card p")).filter(({ text }) =>
      text.includes("dry run"),
    );
    expect(line!.text).toContain("dry run of the campaign spring: 41 would get a message");
    const { text, selection } = await confirmStart(harness, "/", { limit: "5" });
    expect(text).toContain("Start a run of at most 5 messages?");
    expect(text).toContain("Each gets one message of the campaign default as @we.");
    expect(text).toContain("The dry run was of another campaign");
    expect(text).toContain("At most 5 of today's 100 messages are used after it.");
    expect(selection).toEqual({ limit: "5", campaign: "default" });

    const chosen = await confirmStart(harness, "/", { campaign: "spring" });
    expect(chosen.text).toContain("Start the run for 41 people?Each gets one message of the campaign spring as @we.");
    expect(chosen.selection).toEqual({ limit: "41", campaign: "spring" });

    const narrow = await confirmStart(harness, "/", { campaign: "spring B" });
    expect(narrow.text).toContain("Only for variant B.");
    expect(narrow.selection).toEqual({ limit: "100", campaign: "spring", variant: "B" });
    const kept = await confirmStart(harness, "/?campaign=spring&variant=B");
    expect(kept.selection).toEqual({ limit: "100", campaign: "spring", variant: "B" });
  });

  test("names the text, and the limits that the form has", async () => {
    const harness = await openAuthorized({
      env: { MESSAGE_TEMPLATE: "Hi\n---\nHello", MESSAGE_TEMPLATE_NAME: "Winter guide" },
    });
    await harness.append("outreach", ...dryRun(3));
    const { text, selection } = await confirmStart(harness, "/", { variant: "B", basis: "opt_in" });
    expect(text).toContain("Start a run of at most 100 messages?Each gets one message, “Winter guide”, as @we.");
    expect(text).toContain("Only for variant B for recipients with the basis opt in.");
    expect(text).toContain("The dry run had other limits");
    expect(selection).toEqual({ limit: "100", variant: "B", basis: "opt_in" });
  });

  test("promises no more messages than are left of the day's quota", async () => {
    const harness = await openAuthorized({ env: { DAILY_LIMIT: "2" } });
    harness.now = Date.now();
    const day = new Date(harness.now).toISOString().slice(0, 10);
    await harness.append(
      "outreach",
      { type: "DirectMessageAttempted", data: { ...ATTEMPT, text: "Hi", variant: "A", day } },
      ...dryRun(1),
    );
    const { text } = await confirmStart(harness, "/", { limit: "2" });
    expect(text).toContain("Start the run for 1 person?");
    expect(text).toContain("2 of today's 2 messages are used after it.");
  });

  test("shows no figures of a dry run after which messages were sent", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", ...dryRun(76), ...ran(0));
    expect((await confirmStart(harness, "/")).text).toContain("Start the run for 76 people?");
    const after = await openAuthorized();
    await after.append("outreach", ...dryRun(76), ...ran(12));
    expect(await pageAt(after, "/")).toContain("Messages were sent since.");
    const { text } = await confirmStart(after, "/");
    expect(text).toContain("Start a run of at most 100 messages?");
    expect(text).toContain("Messages were sent since the dry run, so only a new one shows who gets a message");
  });

  test("keeps the form's fields if it is cancelled", async () => {
    const harness = await openAuthorized();
    await harness.append("outreach", SPRING, ...dryRun(3));
    const page = await pageAt(harness, "/?back=%2F&limit=5&campaign=spring&basis=&confirm=start-run");
    expect(await textsAt(page, "section.confirm .answer")).toMatchObject([{ links: ["?limit=5&amp;campaign=spring"] }]);
    const back = await pageAt(harness, "/?limit=5&campaign=spring");
    expect(back).toContain("<details open>");
    expect((await confirmStart(harness, "/?limit=5&campaign=spring")).selection).toEqual({
      limit: "5",
      campaign: "spring",
    });
  });
});

test("starting a run needs a session", async () => {
  await using harness = await openApp();
  const answer = await post(harness.app, "/console/run/start", "form_token=x&back=/", { headers: FORM });
  expect(answer.status).toBe(401);
  expect(harness.triggers).toEqual([]);
});
