import { join } from "node:path";
import { expect, setSystemTime, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { Webhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import {
  BEARER,
  exported,
  kill,
  openInstallation,
  stop,
  until,
  untilListening,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { isWhole } from "../harness/case-count.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const PROGRAM = join(import.meta.dirname, "../process/programs/moved-clock.ts");

/** Number of events: with the fault tests those of a small shop's day, otherwise a part. */
const EVENTS = isWhole ? 20_000 : 1_500;

/** Codes of the links that are clicked in turn. Each link has its own stream in the log. */
const CODES = Array.from("abcdefghijklmnopqrst");

/** Number of simultaneous requests. */
const CALLERS = 32;

interface Arrival {
  readonly id: string;
  readonly type: string;
  readonly stream: string;
  readonly position: number;
  /** Code of the clicked link; undefined for an event that is not a click. */
  readonly code: string | undefined;
}

/**
 * Creates a webhook's receiver with its own secret, which verifies each request with two libraries and answers after
 * `delayMs`.
 */
function createReceiver(name: string, delayMs = 0) {
  const secret = `whsec_${Buffer.from(name.padEnd(32, ".")).toString("base64")}`;
  const verifiers = [new Webhook(secret), new SvixWebhook(secret)];
  const arrivals: Arrival[] = [];
  const refused: unknown[] = [];
  const answer = async (request: Request): Promise<Response> => {
    const body = await request.text();
    const headers = Object.fromEntries(request.headers);
    try {
      if (headers["x-receiver"] !== name) throw new Error("its own header is missing");
      // The service's clock may have moved, so this process takes over the time in the request: the libraries compare
      // that time with the clock here.
      setSystemTime(new Date(Number(headers["webhook-timestamp"]) * 1_000));
      for (const verifier of verifiers) verifier.verify(body, headers);
    } catch (fault) {
      refused.push(fault);
      return new Response(null, { status: 400 });
    } finally {
      setSystemTime();
    }
    const { id, type, stream, position, data } = JSON.parse(body).data;
    arrivals.push({ id, type, stream, position, code: data.short_code });
    if (delayMs > 0) await Bun.sleep(delayMs);
    return new Response(null, { status: 204 });
  };
  const listen = (port: number) => Bun.serve({ hostname: "127.0.0.1", port, idleTimeout: 60, fetch: answer });
  let server: ReturnType<typeof listen> | undefined = listen(0);
  const port = server.port ?? 0;
  return {
    settings: (prefix: string, more: Record<string, string>) =>
      Object.fromEntries(
        Object.entries({
          URL: `http://127.0.0.1:${port}/`,
          SECRET: secret,
          HEADERS: `X-Receiver: ${name}`,
          ...more,
        }).map(([ending, value]) => [`${prefix}_${ending}`, value]),
      ),
    arrivals,
    refused,
    async goDown() {
      await server?.stop(true);
      server = undefined;
    },
    comeBack() {
      server = listen(port);
    },
    [Symbol.asyncDispose]: async () => server?.stop(true),
  };
}

/** Posts clicks until `count` are acknowledged, even while the service is killed and restarted. */
async function postClicks(service: () => Running, count: number): Promise<void> {
  let next = 0;
  const post = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) {
      const code = CODES[at % CODES.length] ?? "";
      const click = { event: "click", domain: "go.example", short_code: code, original_url: "https://shop.example/" };
      for (;;) {
        const answer = await service()
          .post("/api/tracking/event", click, BEARER)
          .catch(() => undefined);
        if (answer?.status === 202) break;
        await Bun.sleep(50);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, post));
}

async function start(world: Installation): Promise<Running> {
  const child = Bun.spawn(onRuntime([], { module: PROGRAM }), {
    cwd: world.directory,
    env: world.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return untilListening(child);
}

async function figure(service: Running, name: string): Promise<number> {
  const text = await (await service.get("/metrics", { headers: BEARER })).text();
  return Number(
    text
      .split("\n")
      .find((line) => line.startsWith(`${name} `))
      ?.split(" ")
      .at(-1) ?? NaN,
  );
}

const pendingOf = (service: Running, channel: string): Promise<number> =>
  figure(service, `reachlog_outbox_pending{channel="${channel}",lane="events"}`);

/**
 * Engines of the log, and the number of steps in which the service's clock is moved. A database server's clock cannot
 * be moved, so there the receiver is unreachable until the end of the test instead.
 */
const ROWS = [
  ["in a file, down for an hour", async () => ({}), 6],
  ["on a server", async () => ({ DATABASE_URL: await newDatabase(), REACHLOG_KEY: "5".repeat(64) }), 0],
] as const;

test.each(ROWS)(
  "three webhooks get exactly their events, despite an outage and a killed service: %s",
  async (_, place, steps) => {
    await using world = await openInstallation();
    await using fast = createReceiver("fast");
    await using slow = createReceiver("slow", 10);
    await using down = createReceiver("down");
    const none = {
      CHAT_WEBHOOK_URL: "",
      TELEGRAM_BOT_TOKEN: "",
      TELEGRAM_CHAT_ID: "",
      META_PIXEL_ID: "",
      META_ACCESS_TOKEN: "",
    };
    Object.assign(world.env, none, await place(), {
      ...fast.settings("WEBHOOK", { EVENTS: "LinkClicked" }),
      ...slow.settings("WEBHOOK_CRM", {
        EVENTS: "LinkClicked",
        FILTER: "data.data.short_code == 'a' || data.data.short_code == 'b'",
        ORDER: "stream",
      }),
      ...down.settings("WEBHOOK_BILLING", {
        EVENTS: "LinkClicked,TokenUsed",
        FILTER: "type != 'LinkClicked' || data.data.short_code == 'd'",
      }),
    });
    let service = await start(world);
    await using children = new AsyncDisposableStack();
    children.defer(() => kill(service));
    await postClicks(() => service, EVENTS / 4);
    await down.goDown();
    const posting = postClicks(() => service, EVENTS - EVENTS / 4);
    await until(
      async () => fast.arrivals.length,
      (count) => count > EVENTS / 2,
    );
    await kill(service);
    service = await start(world);
    await posting;
    await until(
      () => pendingOf(service, "webhook"),
      (count) => count === 0,
    );
    await until(
      () => pendingOf(service, "webhook-crm"),
      (count) => count === 0,
    );
    expect(await pendingOf(service, "webhook-billing")).toBeGreaterThan(0);

    const failed = 'reachlog_dispatches_total{channel="webhook-billing",outcome="failed"}';
    for (let step = 0; step < steps; step++) {
      const before = await figure(service, failed);
      service.process.kill("SIGUSR2");
      // The dispatchers notice the new time only when a click arrives, so clicks are posted until they do.
      await until(
        async () => {
          await postClicks(() => service, 1);
          return figure(service, failed);
        },
        (count) => count > before,
      );
    }
    down.comeBack();
    // Some dispatches were given up. The service sends them only after an operator retries them, as this does.
    await until(
      async () => {
        // Moves the service's clock, because the next attempts are due only minutes after the last ones.
        if (steps > 0) service.process.kill("SIGUSR2");
        const again = { all: true, channel: "webhook-billing" };
        expect((await service.post("/api/deliveries/retry", again, BEARER)).status).toBe(200);
        await postClicks(() => service, 1);
        return pendingOf(service, "webhook-billing");
      },
      (count) => count === 0,
    );
    for (const name of ["webhook", "webhook-crm"])
      await until(
        () => pendingOf(service, name),
        (count) => count === 0,
      );
    expect(await stop(service)).toBe(0);

    expect([fast, slow, down].map(({ refused }) => refused)).toEqual([[], [], []]);
    const events = await exported(world);
    const clicks = events.filter(({ type }) => type === "LinkClicked");
    const tokenUses = events.filter(({ type }) => type === "TokenUsed").map(({ id }) => id);
    expect(clicks.length).toBeGreaterThanOrEqual(EVENTS);
    const wanted = (codes: readonly string[]) =>
      new Set(clicks.filter(({ data }) => codes.includes(String(data["short_code"]))).map(({ id }) => id));
    const came = ({ arrivals }: typeof fast) => new Set(arrivals.map(({ id }) => id));
    expect(came(fast)).toEqual(wanted(CODES));
    expect(came(slow)).toEqual(wanted(["a", "b"]));
    expect(tokenUses.length).toBeGreaterThan(0);
    expect(came(down)).toEqual(wanted(["d"]).union(new Set(tokenUses)));
    for (const code of ["a", "b"]) {
      const first = [...new Set(slow.arrivals.filter((one) => one.code === code).map(({ position }) => position))];
      expect(first).toEqual(first.toSorted((one, other) => one - other));
    }
  },
);
