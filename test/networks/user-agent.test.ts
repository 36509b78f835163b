// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import manifest from "../../package.json";
import { isWebhook } from "../../events/channel-and-lane-names.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { Dispatch } from "../../src/networks/network.ts";
import { connectNetworks } from "../../src/service/connect-networks.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { settingsOf, type Choice } from "../../sandbox/service-settings.ts";
import { serve } from "../harness/in-process/local-test-servers.ts";
import { CLIENTS, type Client } from "./bun-and-deno-clients.ts";
import { CLICK, NOTIFICATION, NOW } from "./sample-dispatches.ts";

const NAME = `reachlog/${manifest.version}`;

const TIMEOUT_MS = 60_000;

const MEMBERS = { position: 1, id: CLICK.id, stream: "link-go.example/a", version: 1, hash: "0".repeat(64) };
const LINK = { event: "click", domain: "go.example", short_code: "a", original_url: "https://example.com", bot: false };
const EVENT = {
  kind: "event",
  id: CLICK.id,
  time: CLICK.time,
  event: {
    ...MEMBERS,
    type: "LinkClicked",
    time: CLICK.time,
    data: { ...LINK, channels: [] },
    meta: { caller: "test" },
  },
} as unknown as Dispatch;

const CHOICES: readonly Choice[] = [
  { chat: "slack", messaging: "telegram", ads: ["openai", "snap"] },
  { chat: "discord", messaging: "line" },
  { chat: "google_chat", messaging: "whatsapp" },
  { chat: "teams" },
];

function settingsAt(url: string, sandbox: Sandbox, choice: Choice): Record<string, string> {
  const own = { WEBHOOK_URL: `${sandbox.url}/receiver`, WEBHOOK_SECRET: `whsec_${btoa("x".repeat(32))}` };
  const settings = Object.entries({ ...settingsOf(sandbox, choice), ...own, WEBHOOK_EVENTS: "LinkClicked" });
  return Object.fromEntries(settings.map(([name, value]) => [name, value.replace(sandbox.url, url)]));
}

describe.each(CLIENTS)("on %s", (_runtime, open) => {
  let client: Client;
  beforeAll(() => void (client = open()));
  afterAll(() => client[Symbol.asyncDispose]());

  test("each request to a network names the service and its version", async () => {
    await using sandbox = await startSandbox();
    await using server = serve(() => Response.json({}));
    for (const choice of CHOICES) {
      const config = loadConfig(settingsAt(server.url, sandbox, choice), () => "");
      const { channels, social } = connectNetworks(config, undefined, client.safeFetch([server.url]));
      for (const { name, send, check } of channels) {
        const dispatch = name.startsWith("ads") ? CLICK : isWebhook(name) ? EVENT : NOTIFICATION;
        await send(dispatch, { timeoutMs: TIMEOUT_MS, now: NOW });
        await check(TIMEOUT_MS);
      }
      await social?.network.me("token").catch(() => undefined);
      await social?.network.sendDm("token", "1234567890123456", "hello");
      await social?.oauth.refresh("token").catch(() => undefined);
      await social?.oauth.revoke("token").catch(() => undefined);
    }
    const called = new Set(server.requests.map(({ path }) => path.split("/")[1]));
    const networks = [
      "discord",
      "google_chat",
      "line",
      "meta",
      "openai",
      "receiver",
      "slack",
      "snap",
      "teams",
      "telegram",
      "whatsapp",
      "x",
    ];
    expect(networks.filter((name) => !called.has(name))).toEqual([]);
    expect(server.requests.filter(({ path }) => path.startsWith("/x/2/oauth2/"))).not.toEqual([]);
    const unnamed = server.requests.filter(({ headers }) => headers.get("user-agent")?.split(" ").at(-1) !== NAME);
    expect(unnamed.map(({ path, headers }) => `${path} ${headers.get("user-agent")}`)).toEqual([]);
  });
});
