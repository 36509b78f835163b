// These tests start the service or commands as processes.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BEARER, exported, openInstallation, stop, until, type Installation } from "../harness/process.ts";

describe("a channel", () => {
  let world: Installation;
  beforeAll(async () => {
    world = await openInstallation();
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("without credentials answers direct sends with 503 and gets no dispatches of clicks", async () => {
    const service = await world.host({
      META_PIXEL_ID: "",
      META_ACCESS_TOKEN: "",
      CHAT_WEBHOOK_URL: "",
      TELEGRAM_BOT_TOKEN: "",
      TELEGRAM_CHAT_ID: "",
    });
    const notify = await service.post("/api/notify", { message: "x" });
    expect([notify.status, ((await notify.json()) as { type: string }).type]).toEqual([
      503,
      "urn:reachlog:problem:channel-not-configured",
    ]);
    expect((await service.post("/api/messaging", { text: "x" }, BEARER)).status).toBe(503);
    const { results } = (await (await service.post("/api/tracking/test", undefined, BEARER)).json()) as {
      results: Record<string, { ok: boolean; status: string }>;
    };
    for (const channel of ["ads", "chat", "messaging"]) {
      expect(results[channel]).toMatchObject({ ok: false, status: "not_configured" });
    }
    const url = "https://shop.example/";
    await service.post("/api/tracking/event", { event: "click", domain: "d", short_code: "s", original_url: url });
    const health = (await (await service.get("/api/health")).json()) as {
      channels: Record<string, { pending: number }>;
    };
    expect(Object.values(health.channels).map(({ pending }) => pending)).toEqual([0, 0, 0, 0]);
    expect(await stop(service)).toBe(0);
  });

  test("refused as a whole answers 502, and the operator is notified once on the other channel", async () => {
    const service = await world.host();
    world.sandbox.faults.add({ network: "slack", kind: "channel_archived" });
    for (let time = 0; time < 2; time++) {
      const refused = await service.post("/api/notify", { message: "x" });
      expect([refused.status, ((await refused.json()) as { type: string }).type]).toEqual([
        502,
        "urn:reachlog:problem:delivery-refused",
      ]);
    }
    await until(
      () => Promise.resolve(world.sandbox.telegram.messages.kept),
      (messages) => messages.length > 0,
    );
    expect(world.sandbox.telegram.messages.kept.map(({ text }) => text)).toEqual([
      expect.stringContaining("slack refuses the chat channel"),
    ]);
    world.sandbox.faults.clear();
    const letters = await world.command("deliveries", "list", "--json");
    const dispatches = letters.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(dispatches).toMatchObject([{ channel: "chat" }, { channel: "chat", refused: true }]);
    expect(await world.command("deliveries", "resume", "chat")).toMatchObject({ code: 0 });
    // Two operators retry all dead letters at the same time. Each dead letter must be retried once.
    await Promise.all([
      world.command("deliveries", "retry", "--all", "--yes"),
      world.command("deliveries", "retry", "--all", "--yes"),
    ]);
    const retries = (await exported(world)).filter(({ type }) => type === "DispatchRetryRequested");
    expect(retries).toHaveLength(2);
    await until(
      () => Promise.resolve(world.sandbox.slack.messages.total),
      (total) => total === 2,
    );
    expect(await stop(service)).toBe(0);
  });

  test("with a lost answer gives 504, and the message is never repeated", async () => {
    const service = await world.host();
    const before = world.sandbox.slack.messages.total;
    world.sandbox.faults.add({ network: "slack", kind: "reset_after_delivery", count: 1 });
    const doubtful = await service.post("/api/notify", { message: "perhaps" });
    expect([doubtful.status, ((await doubtful.json()) as { type: string }).type]).toEqual([
      504,
      "urn:reachlog:problem:delivery-in-doubt",
    ]);
    expect((await service.post("/api/notify", { message: "next" })).status).toBe(200);
    expect(world.sandbox.slack.messages.total).toBe(before + 2);
    expect(await stop(service)).toBe(0);
  });
});
