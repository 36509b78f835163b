// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createDiscordChannel } from "../../src/networks/chat/discord.ts";
import { createGoogleChatChannel } from "../../src/networks/chat/google-chat.ts";
import { createLineChannel } from "../../src/networks/messaging/line.ts";
import { createMetaChannel } from "../../src/networks/meta/meta-ads-channel.ts";
import type { Channel } from "../../src/networks/network.ts";
import type { SafeFetch } from "../../src/networks/safe-fetch.ts";
import { createSlackChannel } from "../../src/networks/chat/slack.ts";
import { createTeamsChannel } from "../../src/networks/chat/teams.ts";
import { createTelegramChannel } from "../../src/networks/messaging/telegram.ts";
import { createWhatsappChannel } from "../../src/networks/messaging/whatsapp.ts";
import { createX } from "../../src/networks/x/x-api.ts";
import { secret } from "../../src/platform/secret.ts";
import { CLICK, NOW } from "./sample-dispatches.ts";
import { deadUrl, safeFetchTo, serve, serveRaw } from "../harness/in-process/local-test-servers.ts";

const CANARY = "4242424242:AAF-canary_k7Q9z";
const PERSONAL = [CLICK.ip, CLICK.userAgent, "jane_private", "2244994945"];
const OPTIONS = { timeoutMs: 100, now: NOW };

const WORDS = `token ${CANARY} of [${CLICK.ip}] "${CLICK.userAgent}" @jane_private 2244994945`;

/** Body of an answer with all members in which a network might repeat our own words. */
const ECHO = JSON.stringify({
  ok: false,
  description: WORDS,
  message: WORDS,
  title: WORDS,
  detail: WORDS,
  type: `https://api.x.com/${CANARY}`,
  errors: [{ code: 1, message: WORDS }],
  error: { code: 100, status: "INVALID_ARGUMENT", message: WORDS, error_user_msg: WORDS },
  code: 50_035,
});

function channelsAt(url: string, safeFetch: SafeFetch): Channel[] {
  const token = secret(CANARY);
  return [
    createMetaChannel({ pixelId: "1", accessToken: token, baseUrl: url, safeFetch }),
    createSlackChannel({ webhookUrl: secret(`${url}/services/${CANARY}`), safeFetch }),
    createDiscordChannel({ webhookUrl: secret(`${url}/api/webhooks/1/${CANARY}`), safeFetch }),
    createGoogleChatChannel({ webhookUrl: secret(`${url}/v1/spaces/A/messages?token=${CANARY}`), safeFetch }),
    createTeamsChannel({ webhookUrl: secret(`${url}/paths/invoke?sig=${CANARY}`), safeFetch }),
    createTelegramChannel({ botToken: token, chatId: "2244994945", baseUrl: url, safeFetch }),
    createLineChannel({ accessToken: token, to: "2244994945", baseUrl: url, safeFetch }),
    createWhatsappChannel({ phoneNumberId: "1", accessToken: token, to: "2244994945", baseUrl: url, safeFetch }),
  ];
}

/** Returns everything that the clients report about one server, including thrown errors. */
async function everythingSaid(url: string): Promise<string> {
  const real = safeFetchTo(url);
  const safeFetch: SafeFetch = (called, request) => real(called, { ...request, timeoutMs: 100 });
  const x = createX({ apiUrl: url, safeFetch, clock: () => NOW });
  const channels = channelsAt(url, safeFetch);
  const said = await Promise.allSettled([
    ...channels.flatMap((channel) => [channel.send(CLICK, OPTIONS), channel.check(100)]),
    x.sendDm(CANARY, "2244994945", "Hi"),
    x.me(CANARY),
    x.conversation(CANARY, "2244994945", 10),
  ]);
  expect(said).toHaveLength(2 * channels.length + 3);
  return Bun.inspect(said, { depth: 20 });
}

function expectNothingOf(said: string): void {
  for (const leak of [CANARY, ...PERSONAL]) expect(said).not.toContain(leak);
}

test.each([200, 201, 400, 401, 402, 403, 404, 410, 429, 500, 502])(
  "an answer of %i that echoes secrets and personal data leaks none of them",
  async (status) => {
    await using server = serve(() => new Response(ECHO, { status }));
    expectNothingOf(await everythingSaid(server.url));
  },
);

test("a call without an answer shows no address and no token", async () => {
  await using silent = await serveRaw(() => undefined);
  await using broken = await serveRaw((socket) => socket.resetAndDestroy());
  await using garbage = await serveRaw((socket) => socket.end("garbage\r\n\r\n"));
  await using redirect = serve(({ path }) => Response.redirect(`http://127.0.0.1:1${path}`));
  for (const url of [silent.url, broken.url, garbage.url, redirect.url, await deadUrl()]) {
    expectNothingOf(await everythingSaid(url));
  }
});

test("a send never throws on a hostile answer and never counts it as delivered", async () => {
  const bodies = ["", "null", "[]", "{", "[".repeat(50_000), '{"__proto__":{"ok":true}}', '"ok"', "\0".repeat(70_000)];
  for (const body of bodies) {
    await using server = serve((_seen, nth) => new Response(body, { status: nth % 2 === 0 ? 200 : 400 }));
    const safeFetch = safeFetchTo(server.url);
    for (const channel of channelsAt(server.url, safeFetch)) {
      for (let times = 0; times < 2; times++) {
        expect((await channel.send(CLICK, { ...OPTIONS, timeoutMs: 60_000 })).outcome).not.toBe("delivered");
      }
    }
    const x = createX({ apiUrl: server.url, safeFetch, clock: () => NOW });
    expect((await x.sendDm(CANARY, "1", "Hi")).outcome).not.toBe("sent");
  }
});
