// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { PEOPLE_SHOWN } from "../../src/console/pages/people.tsx";
import { oddIn } from "../harness/unexpected-html.ts";
import { ask, INSTANCE, openApp, TOKEN } from "../harness/in-process/app.ts";
import { click, openConsole, pageAt, person, rowsOf, textsAt } from "./open-console.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";

const PAGES = [
  "/",
  "/setup",
  "/people",
  "/links",
  "/deliveries",
  "/results",
  "/runs",
  "/campaigns",
  "/campaigns/default",
  "/activity",
  "/activity/1",
];

test("each page says what to do if the log is empty", async () => {
  const harness = await openConsole({ env: { X_CLIENT_ID: "app" } });
  for (const path of ["/", "/setup", "/people", "/links", "/deliveries", "/results", "/activity"]) {
    expect(await pageAt(harness, path)).toContain("The log is empty.");
  }
  expect(await pageAt(harness, "/people")).toContain("Import a CSV or JSON file");
  expect(await pageAt(harness, "/links")).toContain("/api/tracking/event");
  expect(await pageAt(harness, "/")).toContain('<a href="/social/auth">');
});

test("the overview shows the quota, each channel and a suspension, but no credential", async () => {
  const harness = await openConsole();
  await harness.append("delivery-chat", {
    type: "ChannelSuspended",
    data: { channel: "chat", network: "slack", detail: "410 <archived>", credential: "keyed-hash" },
  });
  const page = await pageAt(harness, "/");
  expect(page).toContain("0 <small>of 100 messages</small>");
  const [ads, chat] = await textsAt(page, ".channel");
  expect(ads).toEqual({
    text: "AdsUp to date0 in 24 hours, nothing waits",
    links: ["/deliveries?channel=ads"],
  });
  expect(chat?.text).toBe("ChatSuspended0 in 24 hours, nothing waits");
  expect((await textsAt(page, ".needs > .error"))[0]?.text).toMatch(
    /^Error Chat is suspended .*slack refused the channel: "410 <archived>" 0 dispatches wait\.Correct it at slack, then resume Chat\.Resume Chat$/,
  );
  expect(page).not.toContain("keyed-hash");
});

test("each page shows the newest verification as of its moment", async () => {
  const harness = await openConsole();
  const verified = (result: "whole" | "broken", position: number) =>
    harness.append("log", { type: "LogVerified", data: { position, hash: "h", checked: position, result } });
  const markAt = async (path: string) => (await textsAt(await pageAt(harness, path), "#verified"))[0]?.text;
  await harness.append("outreach", person("ada"), person("bob"));
  for (const path of PAGES) expect(await markAt(path)).toBe("Log not checked yet");
  await verified("whole", 2);
  await harness.append("outreach", person("cid"));
  for (const path of PAGES) expect(await markAt(path)).toMatch(/^Log intact, checked \d\d:\d\d$/);
  await verified("broken", 4);
  expect(await markAt("/people")).toMatch(/^Log broken, checked /);
  expect(await markAt("/people?as_of=4")).toMatch(/^Log intact, /);
  expect(await markAt("/people?as_of=2")).toBe("Log not checked yet");
});

test("the menu counts dead letters on each current page, unless there are none", async () => {
  const harness = await openConsole();
  const letter = (source: number) =>
    outcomeOf("DispatchAbandoned", { source, channel: "chat", lane: "clicks", detail: "no", refused: true });
  await harness.append(
    "link-go.example/a",
    ...["a", "b"].map((short_code) => clickOf({ short_code, channels: ["chat"] })),
  );
  expect(await pageAt(harness, "/people")).not.toContain("dead letter");
  await harness.append("delivery-chat", letter(1), letter(2));
  for (const path of PAGES) expect(await pageAt(harness, path)).toContain('aria-label="2 dead letters">2</span>');
  expect(await pageAt(harness, "/people?as_of=4")).not.toContain("dead letter");
});

test("the overview shows the reply and click rates of 30 days with their counts", async () => {
  const harness = await openConsole();
  const figuresAt = async () => textsAt(await pageAt(harness, "/"), ".figures > div");
  const ratesAt = async () => (await figuresAt()).slice(1);
  expect((await figuresAt())[0]?.text).toStartWith("Sent0 all time");
  expect((await ratesAt()).map(({ text }) => text)).toEqual([
    "Replied–0 of 0 sent in 30 days",
    "Clicked–0 of 0 tracked in 30 days",
  ]);
  for (const id of ["1", "2", "3", "4"]) {
    const of = { attempt_id: id, run_id: "r1", recipient: { id, username: `user_${id}` } };
    await harness.append(
      "outreach",
      { type: "DirectMessageAttempted", data: { ...of, text: "Hi", variant: "A", day: "2026-11-20" } },
      { type: "DirectMessageSent", data: { ...of, message_id: id, settled_by: "answer" } },
    );
  }
  const reply = { recipient: { id: "1" }, message_id: "r", received_at: "2999-01-01T00:00:00.000Z" };
  await harness.append("outreach", { type: "DirectMessageReceived", data: reply });
  expect((await ratesAt())[0]).toEqual({ text: "Replied25 %1 of 4 sent in 30 days", links: ["/results"] });
});

test("each figure of the overview links to a page of what it counts", async () => {
  const harness = await openConsole();
  const skip = { run_id: "r1", recipient: { username: "ada" }, reason: "no_consent" } as const;
  await harness.append("outreach", { type: "DirectMessageSkipped", data: skip });
  const links = (await textsAt(await pageAt(harness, "/"), ".figures > div")).flatMap(({ links: hrefs }) => hrefs);
  expect(links).toHaveLength(6);
  const [, skipped = ""] = links;
  const [sentence] = await textsAt(await pageAt(harness, skipped), ".line .sentence");
  expect(sentence?.text).toContain("@ada");
  for (const href of links) await pageAt(harness, href);
});

test("the overview counts recent clicks by people and by bots", async () => {
  const harness = await openConsole();
  harness.now = Date.now();
  await harness.append("link-go.example/a", click("a"), click("a"), click("a", true));
  const page = await pageAt(harness, "/");
  expect(page).toMatch(/people <b>2<\/b>.*suspected <b>0<\/b>.*bots <b>1<\/b>/);
  expect((await textsAt(page, "summary .sentence")).map(({ text }) => text)).toEqual([
    "2 clicks by people on go.example/a · 1 by bots",
  ]);
});

test("charts show the chosen range, and otherwise fit the data", async () => {
  const harness = await openConsole();
  harness.now = Date.now();
  await harness.append("link-go.example/a", click("a"));
  const labelsAt = async (path: string) =>
    (await rowsOf(await pageAt(harness, path))).flatMap(
      (row) => /^\d{1,2} [A-Z][a-z]+( \d{4})?(, \d\d:\d\d)?(?= \|)/.exec(row)?.[0] ?? [],
    );
  for (const [range, rows, pattern] of [
    ["24h", 24, /:00$/],
    ["7d", 7, /^\d+ [A-Za-z]+( \d{4})?$/],
    ["30d", 30, /^\d+ [A-Za-z]+( \d{4})?$/],
    ["90d", 90, /^\d+ [A-Za-z]+( \d{4})?$/],
    ["nonsense", 12, /^\d+ [A-Za-z]+( \d{4})?$/],
  ] as const) {
    const labels = await labelsAt(`/links?skip=0&range=${range}`);
    expect([range, labels.length, labels.filter((label) => !pattern.test(label))]).toEqual([range, rows, []]);
    const page = await pageAt(harness, `/links?skip=0&range=${range}`);
    const picker = await textsAt(page, 'ul[aria-label="Range of the charts"] a[aria-current]');
    expect(picker.map(({ text }) => text.replace(" ", ""))).toEqual([range === "nonsense" ? "Fitted" : range]);
    expect(page).toContain('href="/links?skip=0&amp;range=7d"');
  }
  // The chart of clicks is the only chart on the overview with data, so all labels are from it.
  expect(await labelsAt("/")).toHaveLength(12);
  expect(await labelsAt("/?range=30d")).toHaveLength(30);
  // A fitted chart is of the same time as the figures above it, also if the log is younger.
  const captions = (await textsAt(await pageAt(harness, "/"), "figcaption")).map(({ text }) => text);
  expect(captions).toEqual([
    expect.stringContaining("Messages per day, last 30 days"),
    expect.stringContaining("Clicks per hour, last 48 hours"),
  ]);
});

test.each(["/campaigns", "/"])("a choice of a basis on %s is in plain words", async (path) => {
  const harness = await openConsole({ env: { X_CLIENT_ID: "app" } });
  await harness.authorize();
  const options = (await textsAt(await pageAt(harness, path), "select[name=basis] option")).map(({ text }) => text);
  expect(options.slice(0, 4).toSorted()).toEqual(["all", "no consent", "opted in", "wrote first"]);
});

describe("the page of people", () => {
  test("finds recipients by a part of the handle, by status and by basis", async () => {
    const harness = await openConsole();
    await harness.append("outreach", person("ada", "opt_in", "Ada L"), person("bob", "none"), {
      type: "RecipientSuppressed",
      data: { recipient: { username: "bob" }, reason: "by_hand" },
    });
    const found = async (query: string) => rowsOf(await pageAt(harness, `/people?${query}`));
    expect(await found("")).toHaveLength(2);
    expect(await found("search=AD")).toEqual(["@ada (Ada L) | Not contacted yet | opted in | – | –"]);
    expect(await found("search=%40ada")).toHaveLength(1);
    expect(await found("status=suppressed")).toEqual(["@bob | Suppressed | no consent | – | –"]);
    expect(await found("basis=opt_in&status=suppressed")).toEqual([]);
    expect(await found("status=nonsense")).toHaveLength(2);
  });

  test("continues on the next page under the same filter", async () => {
    const harness = await openConsole();
    const many = Array.from({ length: PEOPLE_SHOWN + 3 }, (_, number) => person(`person_${number}`));
    await harness.append("outreach", ...many, person("other"));
    const first = await pageAt(harness, "/people?search=person");
    expect(await rowsOf(first)).toHaveLength(PEOPLE_SHOWN);
    const next = /href="(\/people\?[^"]*after[^"]*)"/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(next).toContain("search=person");
    const rest = await pageAt(harness, next);
    expect((await rowsOf(rest)).map((row) => row.split(" ")[0])).toEqual(["@person_7", "@person_8", "@person_9"]);
    expect(rest).not.toContain("More people");
  });
});

const HOSTILE = `<img src=x onerror=alert(1)>"><script>alert(1)</script>\u202e\u0000'\`javascript:alert(1)`;

test("oddIn finds markup in a page", async () => {
  expect(await oddIn(`<p onclick="x"><img src="//else"><script>1</script></p>`)).toHaveLength(4);
});

test("texts of strangers are escaped on every page, without direction marks", async () => {
  const harness = await openConsole();
  const message = { attempt_id: HOSTILE, run_id: HOSTILE, recipient: { id: "1", username: "ada" } };
  const user = { id: "9", username: HOSTILE, name: HOSTILE };
  await harness.append(
    "hostile-stream",
    clickOf({ domain: HOSTILE, short_code: HOSTILE, user_agent: HOSTILE, event: HOSTILE }),
    person("eve", "opt_in", HOSTILE),
    { type: "NotificationRequested", data: { message: HOSTILE.repeat(40), service: HOSTILE, level: "info" } },
    { type: "ChannelSuspended", data: { channel: "ads", network: HOSTILE, detail: HOSTILE, credential: "x" } },
    { type: "DirectMessageAttempted", data: { ...message, text: HOSTILE, variant: HOSTILE, day: "2026-11-20" } },
    { type: "AccountAuthorized", data: { user, scopes: [], expires_at: "2026-11-20T10:00:00.000Z" } },
    { type: "RunStarted", data: { run_id: HOSTILE, dry_run: false } },
  );
  const text = encodeURIComponent(`${HOSTILE}/${HOSTILE}`);
  const queries = [`/links/${text}/${text}`, `/people?search=${text}`, `/activity?stream=${text}&type=${text}`];
  const events = [1, 2, 3, 4, 5, 6, 7].map((position) => `/activity/${position}`);
  for (const path of [...PAGES, ...queries, ...events]) {
    const page = await pageAt(harness, path);
    // oxlint-disable-next-line no-control-regex
    expect(page).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u0000]/);
    expect(await oddIn(page)).toEqual([]);
  }
});

test("every page needs a session, and its content security policy is strict", async () => {
  await using harness = await openApp();
  await harness.append("outreach", person("ada"));
  for (const path of PAGES) {
    const response = await ask(harness.app, path);
    expect(response.status).toBe(401);
    const text = await response.text();
    expect(text).toContain("Sign in with an API token");
    expect(text).not.toContain("@ada");
    expect(response.headers.get("content-security-policy")).toStartWith("default-src 'none'; script-src 'self'");
  }
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await ask(harness.app, "/session", { method: "POST", headers, body: `token=${TOKEN}` });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect((await ask(harness.app, "/people", { headers: { cookie } })).status).toBe(200);
});

test.each(["/console.css", "/console.js", "/idiomorph.js"])(
  "%s is served without a session, with its media type",
  async (path) => {
    await using harness = await openApp();
    const response = await ask(harness.app, path);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toStartWith(path.endsWith(".css") ? "text/css" : "text/javascript");
  },
);

test("a page says since when the log is unreachable, and that it may be stale", async () => {
  const harness = await openConsole({ awaySince: Date.parse("2026-03-01T07:59:00.000Z") });
  const [bar] = await textsAt(await pageAt(harness, "/links"), "p.notice");
  expect(bar?.text).toContain("The log is out of reach since");
  expect(bar?.text).toContain("may be out of date");
  const [none] = await textsAt(await pageAt(await openConsole(), "/links"), "p.notice");
  expect(none).toBeUndefined();
});

test("the overview lists the instances that share the log, with their roles", async () => {
  const other = { ...INSTANCE, id: "0195a0f0-0000-7000-8000-000000000002", url: "http://other.example:3001" };
  const harness = await openConsole({ instances: [INSTANCE, other] });
  for (const [name, holder] of [
    ["retention", INSTANCE.id],
    ["dispatcher-chat", other.id],
    ["run", `${other.id}/run-1`],
  ] as const) {
    await harness.store.leases.acquire(name, { holder, ttlMs: 60_000 });
  }
  const rows = (await rowsOf(await pageAt(harness, "/"))).filter((row) => row.includes("http://"));
  expect(rows).toEqual([
    expect.stringMatching(/^http:\/\/localhost:3000 \(this one\) \| 1\.2\.3 \| .* \| retention$/),
    expect.stringMatching(/^http:\/\/other\.example:3001 \| 1\.2\.3 \| .* \| dispatcher-chat, run$/),
  ]);
  expect(await pageAt(await openConsole(), "/")).not.toContain("Instances");
});
