// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { findFreePort } from "../../src/platform/free-port.ts";
import { BEARER, exported, kill, openInstallation, stop, until, type ListeningService } from "../harness/process.ts";

const ROOT = join(import.meta.dirname, "../..");
const SECRET = `whsec_${Buffer.from("a secret of exactly 32 bytes: 42").toString("base64")}`;
const FORMER_SECRET = `whsec_${Buffer.from("the one that it takes the place!").toString("base64")}`;

/**
 * Behaviour of the webhook's receiver. `failing` answers 500 to the clicks of one link. `slow` accepts, but answers
 * after the sender has given up.
 */
type Mode = "up" | "failing" | "slow";

const FAILING_STREAM = "link-go.example/a";

interface Arrival {
  readonly id: string;
  readonly stream: string;
  readonly position: number;
  readonly mode: Mode;
  /** True if the receiver answered this request with success in time. */
  readonly isAccepted: boolean;
}

/** Creates the receiver of a webhook as another team would write it; it keeps its port when it comes back. */
function createReceiver() {
  const webhook = new Webhook(SECRET);
  const arrivals: Arrival[] = [];
  const forged: unknown[] = [];
  const state: { mode: Mode } = { mode: "up" };
  const answer = async (request: Request): Promise<Response> => {
    const { mode } = state;
    let isFailing = false;
    try {
      const event = webhook.verify(await request.text(), Object.fromEntries(request.headers)) as {
        readonly type: string;
        readonly timestamp: string;
        readonly data: { id: string; stream: string; position: number; type: string; time: string };
      };
      const { id, stream, position, type, time } = event.data;
      if (request.headers.get("webhook-id") !== id) throw new Error("webhook-id is another");
      if (event.type !== type || event.timestamp !== time) throw new Error("type or timestamp is another");
      isFailing = mode === "failing" && stream === FAILING_STREAM;
      arrivals.push({ id, stream, position, mode, isAccepted: mode !== "slow" && !isFailing });
    } catch (fault) {
      forged.push(fault);
      return new Response(null, { status: 400 });
    }
    if (mode === "slow") await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    return new Response(null, { status: isFailing ? 500 : 204 });
  };
  const listen = (port: number) => Bun.serve({ hostname: "127.0.0.1", port, idleTimeout: 60, fetch: answer });
  let server: ReturnType<typeof listen> | undefined = listen(0);
  const port = server.port ?? 0;
  return {
    url: `http://127.0.0.1:${port}/hooks/canary?key=canary`,
    arrivals,
    forged,
    state,
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

const clickOf = (short_code: string) => {
  return { event: "click", domain: "go.example", short_code, original_url: "https://shop.example/" };
};

async function clicks(service: ListeningService, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const code of ["a", "b", "c"]) {
      expect((await service.post("/api/tracking/event", clickOf(code))).status).toBe(202);
    }
  }
}

interface Health {
  readonly status: string;
  readonly channels: Record<
    string,
    { configured: boolean; pending: number; circuit: string; suspended: object | null }
  >;
}
const healthOf = async (service: ListeningService): Promise<Health> =>
  (await (await service.get("/api/health")).json()) as Health;

test("a receiver gets each event in order per stream, despite failures and a killed service", async () => {
  await using world = await openInstallation();
  await using receiver = createReceiver();
  const settings = {
    WEBHOOK_URL: receiver.url,
    WEBHOOK_SECRET: `${FORMER_SECRET} ${SECRET}`,
    WEBHOOK_EVENTS: "LinkClicked,MessageRequested",
    WEBHOOK_ORDER: "stream",
  };
  const came = (mode: Mode) => receiver.arrivals.filter((arrival) => arrival.mode === mode).length;
  let service = await world.serve(settings);
  const untilCame = (mode: Mode, count: number) =>
    until(
      async () => came(mode),
      (now) => now >= count,
    );
  await clicks(service, 3);
  await untilCame("up", 9);

  await receiver.goDown();
  await clicks(service, 4);
  await until(
    () => exported(world),
    (events) => events.some(({ type, data }) => type === "DispatchFailed" && data["channel"] === "webhook"),
  );
  receiver.state.mode = "failing";
  receiver.comeBack();
  // The failing event of link `a` holds back only its own stream. Meanwhile the receiver gets all events of the links
  // `b` and `c`.
  await clicks(service, 2);
  const taken = (code: string) =>
    receiver.arrivals.filter(({ stream, isAccepted }) => isAccepted && stream.endsWith(`/${code}`)).length;
  await until(
    async () => [taken("b"), taken("c")],
    (counts) => counts.every((count) => count >= 9),
  );
  expect(taken("a")).toBe(3);
  receiver.state.mode = "slow";
  await untilCame("slow", 1);
  await kill(service);
  service = await world.serve(settings);
  await untilCame("slow", 2);
  receiver.state.mode = "up";
  await clicks(service, 3);
  const health = await until(
    () => healthOf(service),
    ({ channels }) => channels["webhook"]?.pending === 0,
  );
  expect(health).toMatchObject({ channels: { webhook: { configured: true, suspended: null } } });
  const written = service.log();
  expect(await stop(service)).toBe(0);

  expect(receiver.forged).toEqual([]);
  const events = await exported(world);
  const wanted = events.filter(({ type }) => type === "LinkClicked").map(({ id }) => id);
  expect(wanted).toHaveLength(36);
  const accepted = receiver.arrivals.filter(({ isAccepted }) => isAccepted);
  expect(wanted.filter((id) => !accepted.some((arrival) => arrival.id === id))).toEqual([]);
  for (const arrivals of Map.groupBy(receiver.arrivals, ({ stream }) => stream).values()) {
    // Checks for each event that the receiver had accepted all earlier events of the same stream when it arrived.
    const taken = new Set<number>();
    const inOrder = [...new Set(arrivals.map(({ position }) => position))].toSorted((a, b) => a - b);
    for (const { position, isAccepted } of arrivals) {
      expect(inOrder.filter((one) => one < position && !taken.has(one))).toEqual([]);
      if (isAccepted) taken.add(position);
    }
  }
  // Both starts together recorded one subscription, and no output contains the webhook's secret or address.
  const about = events.filter(({ type }) => type.startsWith("Webhook"));
  expect(about.map(({ type, data }) => [type, data["types"]])).toEqual([
    ["WebhookSubscribed", ["LinkClicked", "MessageRequested"]],
  ]);
  expect(JSON.stringify(events) + written).not.toMatch(/whsec_|canary/);
  expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
});

/** Returns the receiver's program in docs/webhooks.md. */
function documented(): string {
  const text = readFileSync(join(ROOT, "docs/webhooks.md"), "utf8");
  const [, program = ""] = /```js\n(.*?)```/s.exec(text) ?? [];
  return program;
}

test("the documented receiver accepts events and a channel test", async () => {
  await using world = await openInstallation();
  const port = await findFreePort("127.0.0.1");
  const receiver = Bun.spawn([process.execPath, "-e", documented()], {
    cwd: ROOT,
    env: { PATH: process.env["PATH"] ?? "", WEBHOOK_SECRET: SECRET, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let shown = "";
  void (async () => {
    for await (const chunk of receiver.stdout.pipeThrough(new TextDecoderStream())) shown += chunk;
  })();
  try {
    const url = `http://127.0.0.1:${port}/`;
    await until(
      () =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      (isUp) => isUp,
    );
    const settings = { WEBHOOK_URL: url, WEBHOOK_SECRET: SECRET, WEBHOOK_EVENTS: "LinkClicked" };
    const service = await world.serve(settings);
    await clicks(service, 1);
    await until(
      async () => shown,
      (lines) => /\d+ LinkClicked link-go\.example\/c\n/.test(lines),
    );
    const { results } = (await (await service.post("/api/tracking/test", undefined, BEARER)).json()) as {
      results: Record<string, unknown>;
    };
    expect(results["webhook"]).toMatchObject({ ok: true, status: "delivered" });
    expect(shown).toContain("ChannelTestRequested requests\n");
    expect(await stop(service)).toBe(0);
    Object.assign(world.env, settings);
    const checked = await world.command("doctor", "--online");
    expect(checked.out).toMatch(/webhook.*the receiver answers/);

    // Without these settings, the log records once that the webhook has ended.
    Object.assign(world.env, { WEBHOOK_URL: "", WEBHOOK_SECRET: "", WEBHOOK_EVENTS: "" });
    for (let start = 0; start < 2; start++) {
      const without = await world.host();
      await clicks(without, 1);
      expect(await healthOf(without)).toMatchObject({ channels: { webhook: { configured: false, pending: 0 } } });
      expect(await stop(without)).toBe(0);
    }
    const about = (await exported(world)).filter(({ type }) => type.startsWith("Webhook"));
    expect(about.map(({ type }) => type)).toEqual(["WebhookSubscribed", "WebhookUnsubscribed"]);
  } finally {
    receiver.kill();
    await receiver.exited;
  }
});
