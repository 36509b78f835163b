/**
 * Measures the limit for delivering a backlog of clicks: posts the service's requests, with the same concurrency, but
 * stores nothing. Prints clicks a second and processor time per click. Arguments: backlog file, URL of the simulated
 * networks.
 */
import { type UsualChannel } from "../harness/sample-click.ts";
import { openSqliteStore } from "eventstore-lite";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { WINDOW_MAX } from "../../src/delivery/pace-and-circuit-breaker.ts";
import { toDispatch } from "../../src/delivery/attempt-dispatches.ts";
import { createMetaChannel } from "../../src/networks/meta/meta-ads-channel.ts";
import type { Click } from "../../src/networks/network.ts";
import type { SafeFetch } from "../../src/networks/safe-fetch.ts";
import { createSlackChannel } from "../../src/networks/chat/slack.ts";
import { createTelegramChannel } from "../../src/networks/messaging/telegram.ts";
import { secret } from "../../src/platform/secret.ts";
import { deliveryTimeOf, timeOfEach } from "./measure-delivery-processor-time.ts";
import { networkSettings } from "./start-network-sinks.ts";

const [file = "", sinks = ""] = process.argv.slice(2);

interface Prepared {
  readonly url: string;
  readonly body: string;
}

const clicks = await readClicks();
const prepared = await prepareAll();
const before = deliveryTimeOf(process.pid);
const start = performance.now();
await Promise.all(Object.values(prepared).map(postAll));
const perSecond = clicks.length / ((performance.now() - start) / 1000);
console.log(JSON.stringify({ perSecond, time: timeOfEach(before, deliveryTimeOf(process.pid), clicks.length) }));

async function readClicks(): Promise<readonly Click[]> {
  await using store = await openSqliteStore<Event>({ file, codec });
  const found: Click[] = [];
  for await (const event of store.read({ types: ["LinkClicked"] })) {
    const dispatch = await toDispatch(store, event, "chat");
    if (dispatch === undefined) throw new Error(`event ${event.position} was erased`);
    if (dispatch.kind === "click") found.push(dispatch);
  }
  return found;
}

/**
 * Creates the requests for the backlog's clicks by the channels' own code. The `fetch` that the code gets only stores
 * each request.
 */
async function prepareAll(): Promise<Readonly<Record<UsualChannel, readonly Prepared[]>>> {
  const kept: Prepared[] = [];
  const keep: SafeFetch = async (url, { body = "" }) => {
    kept.push({ url, body });
    return { status: 200, headers: new Headers(), text: "", truncated: false };
  };
  const settings = networkSettings(sinks);
  const token = secret(settings.META_ACCESS_TOKEN);
  const meta = { pixelId: settings.META_PIXEL_ID, accessToken: token, baseUrl: sinks, safeFetch: keep };
  const ads = createMetaChannel(meta);
  const chat = createSlackChannel({ webhookUrl: secret(settings.CHAT_WEBHOOK_URL), safeFetch: keep });
  const botToken = secret(settings.TELEGRAM_BOT_TOKEN);
  const telegram = { botToken, chatId: settings.TELEGRAM_CHAT_ID, baseUrl: sinks, safeFetch: keep };
  const messaging = createTelegramChannel(telegram);
  const options = { timeoutMs: 1_000, now: Date.now() };

  const size = ads.batch?.max ?? 1;
  for (let at = 0; at < clicks.length; at += size) await ads.batch?.send(clicks.slice(at, at + size), options);
  const forAds = kept.splice(0);
  for (const click of clicks) await chat.send(click, options);
  const forChat = kept.splice(0);
  for (const click of clicks) await messaging.send(click, options);
  return { ads: forAds, chat: forChat, messaging: kept };
}

async function postAll(requests: readonly Prepared[]): Promise<void> {
  let next = 0;
  const headers = { "content-type": "application/json" };
  const postSome = async (): Promise<void> => {
    for (;;) {
      const request = requests[next++];
      if (request === undefined) return;
      const answer = await fetch(request.url, { method: "POST", headers, body: request.body });
      await answer.text();
      if (answer.status !== 200) throw new Error(`the sinks answered ${answer.status}`);
    }
  };
  await Promise.all(Array.from({ length: WINDOW_MAX }, postSome));
}
