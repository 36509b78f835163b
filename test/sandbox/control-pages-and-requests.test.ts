// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { faultKindsOf } from "../../sandbox/faults.ts";
import { NETWORKS } from "../../sandbox/network-origins-and-refusals.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { authorized, callX, personId, postJson } from "./call-simulated-x.ts";

describe("the sandbox's control over HTTP", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox();
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const control = (path: string, body: unknown = {}): Promise<Response> =>
    postJson(`${sandbox.url}/_sandbox/${path}`, body);
  const arrived = async (): Promise<unknown> => (await fetch(`${sandbox.url}/_sandbox/arrived`)).json();

  test("shows the messages and requests that arrived at each network", async () => {
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

  test("offers a form below each X conversation to answer as its recipient", async () => {
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

  test.each([
    ["inbound", { from: "unknown", to: "acme_team", text: "x" }],
    ["inbound", { from: "ada_builds", to: "acme_team" }],
    ["faults", []],
  ])("rejects %s with the body %p and a reason", async (path, body) => {
    const refused = await control(path, body);
    expect([refused.status, await refused.json()]).toEqual([400, { error: expect.any(String) }]);
  });

  test("resets everything but the clock", async () => {
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

  test("shows each message once, as escaped text and as readers see it", async () => {
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

  test("serves pages with a policy that allows only the sandbox's own files", async () => {
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

  test("serves its switches as forms that return only to the sandbox's pages", async () => {
    const pressed = await press("/_sandbox/faults", {
      network: "slack",
      kind: "500",
      page: "/networks/slack",
    });
    expect([pressed.status, pressed.headers.get("location")]).toEqual([303, "/networks/slack"]);
    expect(sandbox.faults.list()).toEqual([{ network: "slack", kind: "500" }]);
    expect(await page()).toContain("1 fault on");
    await press("/_sandbox/faults/clear?network=slack&kind=500", {});
    expect(sandbox.faults.list()).toEqual([]);
    await press("/_sandbox/faults", { network: "x", kind: "429" });
    expect(sandbox.faults.list()).toEqual([{ network: "x", kind: "429" }]);
    const elsewhere = await press("/_sandbox/all-off", { page: "https://evil.example/" });
    expect([elsewhere.status, elsewhere.headers.get("location")]).toEqual([303, "/"]);
    expect(sandbox.faults.list()).toEqual([]);
  });

  test("shows each possible fault as a switch with a description", async () => {
    for (const network of NETWORKS) {
      const text = await page(`/networks/${network}`);
      for (const kind of faultKindsOf(network)) {
        expect(text).toMatch(new RegExp(`<button role="switch" aria-checked="false"[^>]* value="${kind}"`));
        expect(text).toContain(`id="does-${kind}"`);
      }
    }
  });

  test("rejects an invalid form with the reason", async () => {
    const refused = await press("/_sandbox/faults", { network: "slack", kind: "nonsense" });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      { error: expect.stringContaining("a fault wants network and kind") },
    ]);
  });

  test.each([
    ["a page of another site in a current browser", { "sec-fetch-site": "cross-site" }],
    ["a page of another local service in a current browser", { "sec-fetch-site": "same-site" }],
    ["a page of another site in an older browser", { origin: "https://evil.example" }],
    ["a page without an origin in an older browser", { origin: "null" }],
  ] as const)("rejects a request from %s", async (_, headers) => {
    sandbox.faults.add({ network: "slack", kind: "500" });
    const refused = await fetch(`${sandbox.url}/_sandbox/reset`, { method: "POST", headers });
    expect(refused.status).toBe(403);
    expect(sandbox.faults.list()).toHaveLength(1);
  });

  test("accepts requests from its own pages and from programs", async () => {
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
    const [own, console] = [colorsIn("sandbox/control/sandbox.css"), colorsIn("src/console/styles/base.css")];
    const shared = [...own].filter(([name]) => console.has(name));
    expect(shared.length).toBeGreaterThanOrEqual(8);
    expect(shared).toEqual(shared.map(([name]) => [name, console.get(name) ?? ""]));
  });

  test("keeps the newest messages of a long run and counts all of them", async () => {
    sandbox.slack.limit = 1e9;
    const said = 20_001;
    for (let at = 0; at < said; at++) sandbox.slack.messages.add({ text: String(at), shown: "", marks: [], at: 0 });
    expect(sandbox.slack.messages.total).toBe(said);
    expect(sandbox.slack.messages.kept).toHaveLength(10_001);
    expect(sandbox.slack.messages.kept.at(-1)?.text).toBe(String(said - 1));
  });

  test("answers 404 for an unknown path and 400 for invalid JSON", async () => {
    const unknown = await fetch(`${sandbox.url}/nowhere`);
    expect([unknown.status, await unknown.json()]).toEqual([404, { error: "There is nothing at this path." }]);
    const text = await fetch(`${sandbox.url}/_sandbox/faults`, { method: "POST", body: "{" });
    expect([text.status, await text.json()]).toEqual([400, { error: "the body is no JSON" }]);
  });
});
