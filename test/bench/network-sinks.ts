/**
 * Stand-in for Meta, Slack and Telegram in a separate process: answers each request with success and counts the clicks.
 */
import { setTimeout as wait } from "node:timers/promises";

// Argument: ms until each answer.
const [delayMs = "0"] = process.argv.slice(2);

/**
 * Pattern of a click's stamp: the time when the client sent the click, in µs since the epoch, which it wrote into the
 * click's address.
 */
const STAMP = /sent=(\d{16})/g;

const counts = { ads: 0, chat: 0, messaging: 0 };
type Channel = keyof typeof counts;
/**
 * Time of sending in a click's address (`STAMP`) -> number of channels that have received the click. An entry is
 * removed when all channels have the click.
 */
const underWay = new Map<string, number>();
const latenciesMs: number[] = [];
let gate: PromiseWithResolvers<void> | undefined;
let awaited: { readonly clicks: number; readonly reached: () => void } | undefined;

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  // A request under `/control` may wait long for a number of clicks to arrive, so the server closes no idle connection.
  idleTimeout: 0,
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.startsWith("/control/")) return control(pathname.slice("/control/".length), searchParams);
    const body = await request.text();
    if (gate !== undefined) await gate.promise;
    if (delayMs !== "0") await wait(Number(delayMs));
    return answer(pathname, body);
  },
});
console.error(JSON.stringify({ url: server.url.origin }));

function answer(path: string, body: string): Response {
  if (path.startsWith("/slack")) {
    told("chat", 1, body);
    return new Response("ok");
  }
  if (path.startsWith("/bot")) {
    told("messaging", 1, body);
    return Response.json({ ok: true, result: { message_id: counts.messaging } });
  }
  const events = body.split('"event_id":').length - 1;
  told("ads", events, body);
  return Response.json({ events_received: events, messages: [], fbtrace_id: "A1b2C3d4" });
}

function told(channel: Channel, clicks: number, body: string): void {
  counts[channel] += clicks;
  // A message may contain the click's address twice, but counts once.
  for (const stamp of new Set(body.match(STAMP))) tellOf(stamp);
  if (awaited !== undefined && leastTold() >= awaited.clicks) awaited.reached();
}

function tellOf(stamp: string): void {
  const channels = (underWay.get(stamp) ?? 0) + 1;
  if (channels < Object.keys(counts).length) return void underWay.set(stamp, channels);
  underWay.delete(stamp);
  const sentMs = Number(stamp.slice("sent=".length)) / 1000;
  latenciesMs.push(performance.timeOrigin + performance.now() - sentMs);
}

function leastTold(): number {
  return Math.min(counts.ads, counts.chat, counts.messaging);
}

/**
 * Carries out a command under `/control`, then answers with the counts and the latency. `reset` clears both, `hold`
 * makes all requests wait until `release`, `reached?clicks=N` waits until each channel has N clicks, and `told` does
 * nothing.
 */
async function control(command: string, parameters: URLSearchParams): Promise<Response> {
  if (command === "reset") {
    Object.assign(counts, { ads: 0, chat: 0, messaging: 0 });
    underWay.clear();
    latenciesMs.length = 0;
  } else if (command === "hold") {
    gate = Promise.withResolvers();
  } else if (command === "release") {
    gate?.resolve();
    gate = undefined;
  } else if (command === "reached") {
    await reached(Number(parameters.get("clicks")));
  }
  const sorted = latenciesMs.toSorted((one, other) => one - other);
  return Response.json({ counts, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? 0 });
}

function reached(clicks: number): Promise<void> {
  return new Promise((resolve) => {
    awaited = { clicks, reached: resolve };
    if (leastTold() >= clicks) resolve();
  });
}
