// On no harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { authorized, callX, personId, postJson } from "./client.ts";

describe("the sandbox is read and changed over HTTP", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox();
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const control = (path: string, body: unknown = {}): Promise<Response> =>
    postJson(`${sandbox.url}/_sandbox/${path}`, body);
  const arrived = async (): Promise<unknown> => (await fetch(`${sandbox.url}/_sandbox/arrived`)).json();

  test("shows what arrived at each network", async () => {
    const { access_token } = await authorized(sandbox);
    const ada = personId(sandbox, "ada_builds");
    const path = `/dm_conversations/with/${ada}/messages`;
    for (const text of ["once", "twice"]) await callX(sandbox, path, access_token, { text });
    await postJson(sandbox.urls.slackWebhook, { text: "hello" });
    await postJson(sandbox.urls.slackWebhook, {});
    await postJson(sandbox.urls.discordWebhook, { content: "**hi**" });
    await postJson(sandbox.urls.teamsWebhook, { type: "message", attachments: [] });
    await fetch(`${sandbox.urls.line}/v2/bot/message/push`, {
      method: "POST",
      headers: { authorization: `Bearer ${sandbox.line.accessToken}` },
      body: JSON.stringify({ to: sandbox.line.to, messages: [{ type: "text", text: "hello" }] }),
    });
    await postJson(`${sandbox.urls.whatsapp}/v26.0/${sandbox.whatsapp.phoneNumberId}/messages`, {});
    expect(await arrived()).toMatchObject({
      x: {
        accepted: 2,
        recipients: 1,
        most_per_recipient: 2,
        accepted_by_recipient: { [ada]: 2 },
        messages: [{ recipient_id: ada, text: "once" }, { text: "twice" }],
        grants: [{ grant_type: "authorization_code", user_id: personId(sandbox, "acme_team") }],
        answers: { 200: 1, 201: 2, 302: 1 },
      },
      meta: { requests: 0, unique: 0, events: [] },
      slack: { requests: 2, total: 1, messages: [{ text: "hello" }], answers: { 200: 1, 400: 1 } },
      discord: { requests: 1, total: 1, messages: [{ text: "hi", marks: ["bold"], pings: false }] },
      google_chat: { requests: 0, total: 0, messages: [] },
      teams: { requests: 1, total: 0, failures: [{ text: "no adaptive card" }], answers: { 202: 1 } },
      telegram: { requests: 0, total: 0, messages: [] },
      line: { requests: 1, total: 1, messages: [{ text: "hello" }] },
      whatsapp: { requests: 1, total: 0, messages: [], answers: { 401: 1 } },
    });
  });

  test("people are added and replaced, limits set, the clock moved", async () => {
    const person = { id: "77", username: "new_nora", name: "Nora", receives_your_dm: false };
    expect((await control("people", [person])).status).toBe(200);
    await control("people", [{ ...person, receives_your_dm: true }]);
    expect(sandbox.x.people.get("77")).toMatchObject({ receives_your_dm: true });
    await control("limits", { x: { dmLimit: 99 }, slack: 1, telegram: 2, google_chat: 3, whatsapp: 4 });
    expect([sandbox.x.limits.dmLimit, sandbox.slack.limit, sandbox.telegram.limit]).toEqual([99, 1, 2]);
    expect([sandbox.googleChat.limit, sandbox.whatsapp.limit, sandbox.discord.limit]).toEqual([3, 4, 5]);
    const before = sandbox.clock.now();
    const { now } = (await (await control("clock", { advanceMs: 60_000 })).json()) as { now: number };
    expect(now - before).toBeGreaterThanOrEqual(60_000);
  });

  test.each([
    ["people", { id: "77" }],
    ["people", [{ id: "x", username: "a", name: "A" }]],
    ["limits", { x: { dmLimits: 5 } }],
    ["inbound", { from: "nobody", to: "acme_team", text: "x" }],
    ["inbound", { from: "ada_builds", to: "acme_team" }],
    ["post", { from: "nobody", text: "x" }],
    ["post", { from: "ada_builds" }],
    ["telegram/migrate", { to: "abc" }],
    ["faults", []],
  ])("%s refuses %p and says why", async (path, body) => {
    const refused = await control(path, body);
    expect([refused.status, await refused.json()]).toEqual([400, { error: expect.any(String) }]);
  });

  test("reset forgets everything but the time", async () => {
    await postJson(sandbox.urls.slackWebhook, { text: "hello" });
    const { access_token } = await authorized(sandbox);
    sandbox.faults.add({ network: "slack", kind: "500" });
    sandbox.clock.advance(3_600_000);
    const before = sandbox.clock.now();
    await control("reset");
    expect(await arrived()).toMatchObject({ slack: { requests: 0, total: 0 }, x: { grants: [] } });
    expect((await callX(sandbox, "/users/me", access_token)).status).toBe(401);
    expect((await postJson(sandbox.urls.slackWebhook, { text: "again" })).status).toBe(200);
    expect(sandbox.clock.now()).toBeGreaterThanOrEqual(before);
  });

  test("the page shows it all as text, and its buttons switch faults on and off", async () => {
    await postJson(sandbox.urls.slackWebhook, { text: "<script>alert(1)</script>" });
    const page = async (): Promise<string> => (await fetch(sandbox.url)).text();
    expect(await page()).toContain("&lt;script&gt;alert(1)");
    expect(await page()).not.toContain("<script>");
    await postJson(sandbox.urls.googleChatWebhook, { text: "*hi* <users/all>" });
    expect(await page()).toContain("<td>hi &lt;users/all&gt;</td><td>bold, mention</td>");
    const press = (path: string, fields: Record<string, string>): Promise<Response> =>
      fetch(sandbox.url + path, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" });
    const pressed = await press("/_sandbox/faults", { network: "slack", kind: "500" });
    expect([pressed.status, pressed.headers.get("location")]).toEqual([303, "/"]);
    expect(sandbox.faults.list()).toEqual([{ network: "slack", kind: "500" }]);
    expect(await page()).toContain("500 (on)");
    await press("/_sandbox/faults/clear?network=slack&kind=500", {});
    expect(sandbox.faults.list()).toEqual([]);
  });

  test("a long run keeps the newest, and counts them all", async () => {
    sandbox.slack.limit = 1e9;
    const said = 20_001;
    for (let at = 0; at < said; at++) sandbox.slack.messages.add({ text: String(at), shown: "", marks: [], at: 0 });
    expect(sandbox.slack.messages.total).toBe(said);
    expect(sandbox.slack.messages.kept).toHaveLength(10_001);
    expect(sandbox.slack.messages.kept.at(-1)?.text).toBe(String(said - 1));
  });

  test("unknown paths are 404, and what is no JSON is refused as such", async () => {
    expect((await fetch(`${sandbox.url}/nowhere`)).status).toBe(404);
    const text = await fetch(`${sandbox.url}/_sandbox/faults`, { method: "POST", body: "{" });
    expect([text.status, await text.json()]).toEqual([400, { error: "the body is no JSON" }]);
  });
});
