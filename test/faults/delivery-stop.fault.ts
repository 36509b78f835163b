import { expect, test } from "bun:test";
import { BEARER, openInstallation, until, type Running, type Installation, stop } from "../harness/process.ts";
import { click } from "./click-load.ts";
import { countArrivals, rowOf, unlimit } from "./delivery-network-table.ts";

const STOPS = process.env["FAULTS_WHOLE"] === "1" ? 40 : 8;
const CALLERS = 8;

/** Time in ms until a network answers; the longest is close to the timeout of an attempt. */
const ANSWERS_AFTER_MS = { quick: 0, slow: 300, slowest: 4_500 } as const;

/** Number of clicks that arrive before each signal, so that each stop has a different number in flight. */
const ARRIVED_BEFORE = [1, 30, 7, 60] as const;

/**
 * Counts, by name, the clicks that arrive at Slack and Telegram. They do not recognise repeats, so a repeated click is
 * a second message there.
 */
function countAll({ sandbox }: Installation) {
  return {
    slack: countArrivals(rowOf("slack"), sandbox),
    telegram: countArrivals(rowOf("telegram"), sandbox),
  };
}

/** Puts a proxy in front of the networks that delays each answer. */
function slowDown({ env, sandbox }: Installation, ms: number): Disposable {
  const way = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const answer = await fetch(sandbox.url + pathname + search, { method, headers, body: await request.bytes() });
      await Bun.sleep(ms);
      return answer;
    },
  });
  for (const name of ["TELEGRAM_API_URL", "META_API_URL", "CHAT_WEBHOOK_URL"]) {
    env[name] = (env[name] ?? "").replace(sandbox.url, way.url.origin);
  }
  return { [Symbol.dispose]: () => void way.stop(true) };
}

/** Posts clicks, each with its own name, until the service no longer answers. */
async function post(service: Running, next: () => number): Promise<void> {
  for (;;) {
    const body = { ...click(0), short_code: `click-${next()}` };
    const answer = await service.post("/api/tracking/event", body, BEARER).catch(() => undefined);
    if (answer === undefined) return;
    await answer.text();
  }
}

test.each(Object.entries(ANSWERS_AFTER_MS))(
  "no dispatch arrives twice after stops and restarts under load, with %s networks",
  async (name, ms) => {
    await using world = await openInstallation();
    unlimit(world.sandbox);
    // A digest announces clicks together that would wait longer than this setting. With an hour each click is sent by
    // itself, and the test finds every click at the network.
    world.env["CHAT_DIGEST_AFTER_SECONDS"] = "3600";
    const arrivals = countAll(world);
    using _way = slowDown(world, ms);
    let posted = 0;
    let cut = 0;
    const isSlowest = ms > 1_000;
    const stops = isSlowest ? STOPS / 4 : STOPS;
    for (let time = 0; time < stops; time++) {
      const service = await world.serve();
      const before = arrivals.telegram.size;
      const wanted = isSlowest ? 1 : (ARRIVED_BEFORE[time % ARRIVED_BEFORE.length] ?? 1);
      const callers = Array.from({ length: CALLERS }, () => post(service, () => posted++));
      await until(
        () => Promise.resolve(arrivals.telegram.size),
        (size) => size >= before + wanted,
      );
      // This caller of a direct send still waits for its outcome when the service is told to stop.
      const waits = service.post("/api/notify", { message: "m", service: "s", level: "info" }, BEARER).catch(() => {});
      expect(await stop(service)).toBe(0);
      if (service.log().includes("stopped before everything")) cut++;
      await Promise.all([waits, ...callers]);
    }
    const told = Object.entries(arrivals).map(([network, counts]) => {
      return { network, clicks: counts.size, doubled: [...counts.values()].filter((count) => count > 1).length };
    });
    console.log(
      `${stops} stops, networks ${name}: ${told.map((one) => `${one.network} ${one.clicks} clicks, ${one.doubled} told twice`).join("; ")}`,
    );
    expect({ cut, doubled: told.map(({ doubled }) => doubled) }).toEqual({ cut: 0, doubled: [0, 0] });
  },
);
