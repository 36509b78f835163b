// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { ask, post, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";
import { openConsole, pageAt, person, textsAt } from "../open-console.ts";

const CONFIGURED = {
  X_CLIENT_ID: "client",
  MESSAGE_TEMPLATE: "Hi {{name|there}}\n---\nHello",
  META_PIXEL_ID: "1",
  META_ACCESS_TOKEN: "token-of-meta",
  CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T000/B000/XXXX",
  TELEGRAM_BOT_TOKEN: "1:token-of-telegram",
  TELEGRAM_CHAT_ID: "7",
};

/** Returns the steps of the setup page with their status, such as `X app: to do`. */
async function stepsOf(harness: AppHarness): Promise<readonly string[]> {
  const titles = await textsAt(await pageAt(harness, "/setup"), ".steps h2");
  return titles.map(({ text }) =>
    text.replace(/ (Done|Warning|To do|Left out)$/, (_, status: string) => `: ${status.toLowerCase()}`),
  );
}

test("with nothing configured, each step shows the settings or the command to use", async () => {
  const env = { X_CLIENT_ID: "" };
  const harness = await openConsole({ env, hasTemplate: false, channels: [], publicUrl: "http://127.0.0.1:3000" });
  expect(await stepsOf(harness)).toEqual([
    "X app: to do",
    "X account: to do",
    "Message: to do",
    "People: to do",
    "Ads: left out",
    "Ads at OpenAI: left out",
    "Ads at Snap: left out",
    "Team chat: left out",
    "Messaging: left out",
    "Webhook: left out",
    "Tokens of the API: left out",
    "Backup: left out",
    "The day: done",
  ]);
  const page = await pageAt(harness, "/setup");
  expect(await textsAt(page, "button[disabled]")).toEqual([{ text: "Test channels", links: [] }]);
  const lines = (await textsAt(page, "pre")).map(({ text }) => text);
  expect(lines).toEqual([
    "X_CLIENT_ID=\nX_CLIENT_SECRET=",
    "MESSAGE_TEMPLATE='Hi {{name|there}}, …'",
    "reachlog recipients import FILE",
    "META_PIXEL_ID=\nMETA_ACCESS_TOKEN=",
    "OPENAI_ADS_PIXEL_ID=\nOPENAI_ADS_API_KEY=",
    "SNAP_PIXEL_ID=\nSNAP_ACCESS_TOKEN=",
    "CHAT_PROVIDER=slack\nCHAT_WEBHOOK_URL=",
    "MESSAGING_PROVIDER=telegram\nTELEGRAM_BOT_TOKEN=\nTELEGRAM_CHAT_ID=",
    "WEBHOOK_URL=\nWEBHOOK_SECRET=whsec_…\nWEBHOOK_EVENTS=LinkClicked",
    "reachlog token new NAME",
    "reachlog backup FOLDER\nreachlog restore FOLDER --rehearse",
  ]);
  expect(page).toContain("http://127.0.0.1:3000/social/callback");
});

test("each webhook is a step with its name, and a suspended one is to do", async () => {
  const hook = (prefix: string) => ({
    [`${prefix}_URL`]: "https://receiver.example/",
    [`${prefix}_SECRET`]: `whsec_${btoa("x".repeat(32))}`,
    [`${prefix}_EVENTS`]: "RunFinished",
  });
  const env = { ...hook("WEBHOOK"), ...hook("WEBHOOK_CRM") };
  const harness = await openConsole({ env, channels: ["webhook", "webhook-crm"] });
  const steps = async () => (await stepsOf(harness)).filter((step) => step.startsWith("Webhook"));
  expect(await steps()).toEqual(["Webhook: done", "Webhook crm: done"]);
  const data = { channel: "webhook-crm", network: "standard_webhooks", detail: "gone", credential: "" } as const;
  await harness.append("delivery-webhook-crm", { type: "ChannelSuspended", data });
  expect(await steps()).toEqual(["Webhook crm: to do", "Webhook: done"]);
});

test("with REQUIRE_CONSENT=evidence the number of recipients without it is shown", async () => {
  const harness = await openConsole({ env: { ...CONFIGURED, REQUIRE_CONSENT: "evidence" } });
  const consent = { recipient: { username: "ada" }, basis: "opt_in", consent_at: "2025-03-02" } as const;
  await harness.append("outreach", person("ada"), person("bob", "none"), person("cid"), {
    type: "ConsentRecorded",
    data: consent,
  });
  const without = "2 with consent, but without its date or source: runs skip them.";
  expect(await pageAt(harness, "/setup")).toContain(`1 without consent</a>: runs skip them. ${without}`);
  await harness.append("outreach", { type: "ConsentRecorded", data: { ...consent, consent_source: "form" } });
  expect(await pageAt(harness, "/setup")).toContain("1 with consent, but without its date or source");
});

test("steps become done as the log grows, and no credential is shown", async () => {
  const harness = await openConsole({ env: CONFIGURED });
  expect((await stepsOf(harness)).filter((step) => step.endsWith("to do"))).toEqual([
    "X account: to do",
    "People: to do",
  ]);
  expect(await pageAt(harness, "/setup")).toContain('<a href="/social/auth">Authorize an X account</a>');
  await harness.authorize();
  await harness.append("outreach", person("ada"), person("bob", "none"));
  const page = await pageAt(harness, "/setup");
  expect((await stepsOf(harness)).filter((step) => !step.endsWith("done"))).toEqual([
    "Opt-outs: left out",
    "Ads at OpenAI: left out",
    "Ads at Snap: left out",
    "Webhook: left out",
    "Tokens of the API: left out",
    "Backup: left out",
  ]);
  expect(page).toContain("8 of 14 steps are done. A run can start");
  expect(page).toContain("Messages are sent as <bdi>@we</bdi>.");
  expect(page).toContain("in 2 variants");
  expect(page).toContain('2 known</a>, <a href="/people?basis=none">1 without consent</a>: runs skip them.');
  for (const secret of ["token-of", "XXXX", "client"]) expect(page.replaceAll("client id", "")).not.toContain(secret);
});

test.each([
  ["Hi, STOP or https://acme.example/stop", "warning", "without {{optout}}: A"],
  ["Hi {{optout}}", "done", "Each variant links"],
  ["Hi, reply stop\n---\nHi https://acme.example/a", "left out", "Variants without a way to opt out: B."],
])(
  "the step of opt-outs needs {{optout}} or a stop word in each variant: %j is %s",
  async (template, status, words) => {
    const env = { ...CONFIGURED, MESSAGE_TEMPLATE: template, PUBLIC_URL: "https://go.example" };
    const harness = await openConsole({ env });
    expect(await stepsOf(harness)).toContain(`Opt-outs: ${status}`);
    const page = await pageAt(harness, "/setup");
    expect(page).toContain(words);
  },
);

test("the step of live signals compares how many messages the stream brought and how many only the inbox showed", async () => {
  const harness = await openConsole({ env: { ...CONFIGURED, X_APP_BEARER_TOKEN: "token-of-the-app" } });
  expect(await stepsOf(harness)).toContain("Live signals: to do");
  const opened = (...details: string[]) => ({
    type: "SignalStreamChanged" as const,
    data: { open: true, details },
  });
  const recipient = { id: "7", username: "grace" };
  const held = { recipient, message_id: "9", received_at: "2026-11-20T10:00:00.000Z", reason: "x_chat" } as const;
  const received = { recipient, message_id: "8", received_at: "2026-11-20T10:00:00.000Z" };
  await harness.append("outreach", opened("chat.received: X answered 403"), {
    type: "DirectMessageReceived",
    data: { ...received, via: "stream" },
  });
  await harness.append("outreach", {
    type: "RecipientSuppressed",
    data: { recipient: { id: "8" }, reason: "opt_out" },
  });
  await harness.append("outreach", { type: "RecipientHeld", data: held });
  expect(await stepsOf(harness)).toContain("Live signals: to do");
  const page = await pageAt(harness, "/setup");
  expect(page).toContain("X refuses: chat.received: X answered 403.");
  expect(page).toContain(
    "it found 1 message of senders who wrote first or replied, and 0 opt-outs; only reading found 0 and 1.",
  );
  expect(page).not.toContain("token-of");
  await harness.append("outreach", opened());
  expect(await stepsOf(harness)).toContain("Live signals: done");
  expect(await pageAt(harness, "/")).toContain("1 person replied in X Chat");
});

test("a step that no longer works is to do again", async () => {
  const harness = await openConsole({ env: { ...CONFIGURED, MESSAGE_TEMPLATE: "Hi {{name}} of {{company}}" } });
  await harness.authorize();
  await harness.append("outreach", person("ada"));
  await harness.append("account", {
    type: "TokenRefreshFailed",
    data: { user_id: "1", dead: true, reason: "invalid_grant" },
  });
  await harness.append("delivery-chat", {
    type: "ChannelSuspended",
    data: { channel: "chat", network: "slack", detail: "channel_is_archived", credential: "c" },
  });
  expect((await stepsOf(harness)).filter((step) => step.endsWith("to do"))).toEqual([
    "X account: to do",
    "Message: to do",
    "Team chat: to do",
  ]);
  const page = await pageAt(harness, "/setup");
  expect(page).toContain("No recipient can get it: none has company");
  expect(page).toContain("channel_is_archived");
  expect(page).toContain("Authorize it again");
  // The list does not name the chat, because a run does not need it.
  expect(await pageAt(harness, "/")).toContain("Before a run can start: X account.");
});

test("the step of people is done if inbound messages are a source", async () => {
  const harness = await openConsole({ env: { ...CONFIGURED, RECIPIENT_SOURCES: "list,inbound" } });
  expect(await stepsOf(harness)).toContain("People: done");
});

test("the overview links to the setup until a run can start", async () => {
  const harness = await openConsole({ env: CONFIGURED });
  expect(await pageAt(harness, "/")).toContain(
    'Welcome. Before a run can start: X account. <a href="/setup">What to set up</a>',
  );
  await harness.authorize();
  expect(await pageAt(harness, "/")).not.toContain('<a href="/setup">What');
});

test("the backup's step shows the newest backup and rehearsal, as of the page's moment", async () => {
  const harness = await openConsole();
  const backupAt = async (path = "/setup"): Promise<string> =>
    (/<li>(?=<h2>Backup)(.*?)<\/li>/s.exec(await pageAt(harness, path))?.[1] ?? "none")
      .replaceAll(/<[^>]*>/g, "")
      .replaceAll(/\d+ \w+, \d\d:\d\d/g, "TIME");
  const commands = "In a terminal:reachlog backup FOLDER\nreachlog restore FOLDER --rehearse";
  const notRehearsed = "The log has no record that a backup was rehearsed.";
  const none = `Backup Left outThe log has no record that a backup was made. ${notRehearsed}${commands}`;
  expect(await backupAt()).toBe(none);
  const data = { position: 1, hash: "h", made_at: "2026-11-20T12:00:00.000Z" };
  await harness.append("outreach", person("ada"));
  await harness.append("log", { type: "BackupMade", data });
  const one = `Backup DoneThe backup up to position 1 was made TIME. ${notRehearsed}${commands}`;
  expect(await backupAt()).toBe(one);
  await harness.append(
    "log",
    { type: "BackupRehearsed", data },
    { type: "BackupMade", data: { ...data, position: 3 } },
  );
  expect(await backupAt()).toBe(
    `Backup DoneThe backup up to position 3 was made TIME. The backup up to position 1 was rehearsed TIME.${commands}`,
  );
  expect(await backupAt("/setup?as_of=1")).toBe(none);
  expect(await backupAt("/setup?as_of=2")).toBe(one);
});

describe("the test of the channels", () => {
  async function testing(harness: AppHarness): Promise<string> {
    const form_token = /name="form_token" value="([^"]+)"/.exec(await pageAt(harness, "/setup"))?.[1] ?? "";
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const body = new URLSearchParams({ form_token, back: "/setup" }).toString();
    const answer = await post(harness.app, "/console/channels/test", body, { headers });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/setup"]);
    const cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    const page = await (await ask(harness.app, "/setup", { headers: { cookie } })).text();
    return /<section class="(notice[^>]*><p [^>]*>.*?)<\/p>/.exec(page)?.[1] ?? "none";
  }

  test("shows the outcome of each channel", async () => {
    const harness = await openConsole({ channels: ["ads", "chat"] });
    expect(await testing(harness)).toContain(
      'role="status">ads: delivered in 12 ms; chat: delivered in 12 ms; messaging: not configured; webhook: not configured.',
    );
    const [asked] = await Array.fromAsync(harness.store.read({ types: ["ChannelTestRequested"] }));
    expect(asked?.data).toEqual({ channels: ["ads", "chat"] });
  });

  test("shows a network's refusal as a fault", async () => {
    const harness = await openConsole({ channels: ["chat"] });
    harness.settlement = { status: "failed", detail: "410 <gone>" };
    expect(await testing(harness)).toContain('role="alert">ads: not configured; chat: failed (410 &lt;gone>);');
  });
});

test("a wrong clock is a step, and the overview says that no run starts", async () => {
  const harness = await openConsole({ skewMs: -2 * 3_600_000 });
  expect((await stepsOf(harness)).filter((step) => !step.endsWith("done")).at(-1)).toBe("Clock: to do");
  for (const path of ["/", "/setup"])
    expect(await pageAt(harness, path)).toContain("No run starts: this machine's clock is 2 h behind the log's");
});

test("the tokens are listed with scopes, expiry and last use, and expiring ones cause a warning", async () => {
  const harness = await openConsole();
  // Sets the clock to a time that is later than each event in the log.
  harness.now = Date.parse("2100-03-01T08:00:00.000Z");
  const day = 86_400_000;
  const token = (name: string, digit: string) => ({ name, sha256: digit.repeat(64) });
  harness.deps.authentication.replace([
    { name: "tests", sha256: new Bun.CryptoHasher("sha256").update(TOKEN).digest("hex") },
    { ...token("web", "a"), scopes: ["track"], links: ["go.example"], expiresAt: harness.now + 14 * day },
    { ...token("ops", "b"), scopes: ["read", "run"], expiresAt: harness.now + 15 * day },
    { ...token("old", "c"), scopes: ["read"], expiresAt: harness.now - day },
  ]);
  await harness.append("access", {
    type: "TokenUsed",
    data: { name: "ops", token_id: "b".repeat(12), day: "2100-02-27" },
  });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: form });
  const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0]!;
  const page = await (await ask(harness.app, "/setup", { headers: { cookie } })).text();
  const cells = (await textsAt(page, "table td")).map(({ text }) => text);
  expect(cells.slice(5)).toEqual(
    [
      ["web", "a".repeat(12), "track (clicks of go.example only)", "15 Mar, 08:00", "never"],
      ["ops", "b".repeat(12), "read, run", "16 Mar, 08:00", "2100-02-27"],
      ["old", "c".repeat(12), "read", "28 Feb, 08:00", "never"],
    ].flat(),
  );
  expect(cells.slice(0, 5)).toEqual([
    "tests",
    expect.any(String),
    "everything: its entry names no scopes",
    "never",
    "never",
  ]);
  expect(page).toContain("the token aaaaaaaaaaaa of web expires on 2100-03-15");
  expect(page).toContain("the token cccccccccccc of old expired on 2100-02-28");
  expect(page).not.toContain("bbbbbbbbbbbb of ops");
});
