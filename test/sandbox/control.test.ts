// On no harness.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { faultKindsOf } from "../../sandbox/faults.ts";
import { NETWORKS } from "../../sandbox/network.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
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
    await postJson(`${sandbox.urls.whatsapp}/v27.0/${sandbox.whatsapp.phoneNumberId}/messages`, {});
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

  test("below each conversation on X one can answer as its recipient", async () => {
    const { access_token } = await authorized(sandbox);
    const [us, ada] = [personId(sandbox, "acme_team"), personId(sandbox, "ada_builds")];
    await callX(sandbox, `/dm_conversations/with/${ada}/messages`, access_token, { text: "once" });
    const page = await (await fetch(`${sandbox.url}/networks/x`)).text();
    const form = /<form class="reply" method="post" action="([^"]+)">(.*?)<\/form>/.exec(page);
    const fields = [...(form?.[2] ?? "").matchAll(/type="hidden" name="(\w+)" value="([^"]+)"/g)];
    const body = new URLSearchParams([...fields.map(([, name = "", value = ""]) => [name, value]), ["text", "STOP"]]);
    const answer = await fetch(sandbox.url + (form?.[1] ?? ""), { method: "POST", body, redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/networks/x"]);
    expect(sandbox.x.messages.kept.at(-1)).toMatchObject({ sender_id: ada, recipient_id: us, text: "STOP" });
    expect(page).toContain("Answer as @ada_builds");
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
    ["inbound", { from: "unknown", to: "acme_team", text: "x" }],
    ["inbound", { from: "ada_builds", to: "acme_team" }],
    ["post", { from: "unknown", text: "x" }],
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

  const page = async (path = "/"): Promise<string> => (await fetch(sandbox.url + path)).text();
  const press = (path: string, fields: Record<string, string>): Promise<Response> =>
    fetch(sandbox.url + path, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" });

  test("the pages show messages as text, once and as readers see them", async () => {
    const hostile = "<script>alert(1)</script>";
    await postJson(sandbox.urls.slackWebhook, {
      text: hostile,
      blocks: [{ type: "section", text: { type: "plain_text", text: hostile } }],
    });
    await postJson(sandbox.urls.googleChatWebhook, { text: "*hi* <users/all>" });
    for (const path of ["/", "/networks/slack"]) {
      expect((await page(path)).split("&lt;script>alert(1)")).toHaveLength(2);
      expect(await page(path)).not.toContain("<script>");
    }
    expect(await page("/networks/google_chat")).toContain("hi &lt;users/all>");
    expect(await page("/networks/google_chat")).toContain("formatted: bold, mention");
  });

  test("a page lets in nothing but the sandbox's own files", async () => {
    const { headers } = await fetch(sandbox.url);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(headers.get("content-security-policy")).toContain("form-action 'self'");
    for (const [path, type] of [
      ["/sandbox.css", "text/css"],
      ["/sandbox.js", "text/javascript"],
      ["/idiomorph.js", "text/javascript"],
    ] as const) {
      expect((await fetch(sandbox.url + path)).headers.get("content-type")).toBe(`${type}; charset=utf-8`);
    }
  });

  test("its switches are forms, and lead back to their own page and to no other", async () => {
    const pressed = await press("/_sandbox/faults", {
      network: "slack",
      kind: "500",
      page: "/networks/slack",
      count: "",
    });
    expect([pressed.status, pressed.headers.get("location")]).toEqual([303, "/networks/slack"]);
    expect(sandbox.faults.list()).toEqual([{ network: "slack", kind: "500" }]);
    expect(await page()).toContain("on for every request");
    await press("/_sandbox/faults/clear?network=slack&kind=500", {});
    expect(sandbox.faults.list()).toEqual([]);
    await press("/_sandbox/faults", { network: "x", kind: "429", count: "2", retryAfter: "90" });
    expect(sandbox.faults.list()).toEqual([{ network: "x", kind: "429", count: 2, retryAfter: 90 }]);
    const elsewhere = await press("/_sandbox/all-off", { page: "https://evil.example/" });
    expect([elsewhere.status, elsewhere.headers.get("location")]).toEqual([303, "/"]);
    expect(sandbox.faults.list()).toEqual([]);
  });

  test("each fault that a network can have is a switch with a description", async () => {
    for (const network of NETWORKS) {
      const text = await page(`/networks/${network}`);
      for (const kind of faultKindsOf(network)) {
        expect(text).toMatch(new RegExp(`<button role="switch" aria-checked="false"[^>]* value="${kind}"`));
        expect(text).toContain(`id="does-${kind}"`);
      }
    }
  });

  test("what people misuse is answered with a page, what programs misuse with JSON", async () => {
    const asked = { headers: { accept: "text/html" } };
    for (const path of ["/nowhere", "/networks/x?conversation=1-2"]) {
      const answer = await fetch(sandbox.url + path, asked);
      expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining("To the overview")]);
    }
    const body = new URLSearchParams({ network: "slack", kind: "nonsense" });
    const refused = await fetch(`${sandbox.url}/_sandbox/faults`, { ...asked, method: "POST", body });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining("a fault wants network and kind"),
    ]);
    const programs = await fetch(`${sandbox.url}/nowhere`);
    expect([programs.status, await programs.json()]).toEqual([404, { error: "There is nothing at this path." }]);
  });

  test.each([
    ["a page of another site", { "sec-fetch-site": "cross-site" }],
    ["a page of another service of this machine", { "sec-fetch-site": "same-site" }],
    ["an older browser for a page of another site", { origin: "https://evil.example" }],
    ["an older browser for a page without an origin", { origin: "null" }],
  ] as const)("nothing is done for what %s has a browser send", async (_, headers) => {
    sandbox.faults.add({ network: "slack", kind: "500" });
    const refused = await fetch(`${sandbox.url}/_sandbox/reset`, { method: "POST", headers });
    expect(refused.status).toBe(403);
    expect(sandbox.faults.list()).toHaveLength(1);
  });

  test("its own pages, and programs, do what they want", async () => {
    for (const headers of [{ "sec-fetch-site": "same-origin" }, { origin: sandbox.url }, {}] as HeadersInit[]) {
      expect((await fetch(`${sandbox.url}/_sandbox/reset`, { method: "POST", headers })).status).toBe(200);
    }
  });

  test("has the colors of the operator's console", () => {
    const colorsIn = (file: string): Map<string, string> => {
      const css = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
      return new Map(
        [...css.matchAll(/(--[\w-]+): (light-dark\(.+\));/g)].map(([, name = "", value = ""]) => [name, value]),
      );
    };
    const [own, console] = [colorsIn("sandbox/control/sandbox.css"), colorsIn("src/console/console.css")];
    const shared = [...own].filter(([name]) => console.has(name));
    expect(shared.length).toBeGreaterThanOrEqual(8);
    expect(shared).toEqual(shared.map(([name]) => [name, console.get(name) ?? ""]));
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
