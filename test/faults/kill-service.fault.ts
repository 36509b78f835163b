import { expect, test } from "bun:test";
import type { Recorded } from "../../events/event-types-and-codec.ts";
import type { Person } from "../../sandbox/x/people.ts";
import { outcomesIn } from "../harness/in-process/dispatch-outcome-events.ts";
import {
  authorize,
  exported,
  openInstallation,
  until,
  type Running,
  type Installation,
  kill,
} from "../harness/process.ts";

async function settled(world: Installation, service: Running): Promise<void> {
  await until(
    async () => (await (await service.get("/social/health")).json()) as { running: boolean },
    ({ running }) => !running,
  );
  expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
}

test("after kill -9 during runs no recipient gets two messages, and every arrived one is recorded", async () => {
  await using world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000, lateCommitMs: 200 } });
  const rows = ["username,basis"];
  for (let number = 1; number <= 60; number++) {
    const person: Person = {
      id: String(6_000_000_000 + number),
      username: `one_${number}`,
      name: "One",
      receives_your_dm: true,
    };
    world.sandbox.x.people.set(person.id, person);
    rows.push(`${person.username},opt_in`);
  }
  await world.execute("recipients", "import", world.file("people.csv", rows.join("\n")));
  let service = await world.serve();
  await authorize(service, world.sandbox);

  // Kills the service twice in the middle of a run. Later it is killed once more, exactly after the network has
  // accepted a message and before the log records it.
  for (const stopAt of [10, 25]) {
    expect((await service.post("/social/run")).status).toBe(202);
    await until(
      () => Promise.resolve(world.sandbox.x.accepted.size),
      (size) => size >= stopAt,
    );
    await kill(service);
    service = await world.serve();
    await settled(world, service);
  }
  world.sandbox.faults.add({ network: "x", kind: "timeout_after_delivery", path: "/messages", count: 1 });
  const reached = world.sandbox.x.accepted.size;
  await service.post("/social/run");
  await until(
    () => Promise.resolve(world.sandbox.x.accepted.size),
    (size) => size > reached,
  );
  await kill(service);
  service = await world.serve();
  await settled(world, service);
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  await settled(world, service);

  const { accepted } = world.sandbox.x;
  const stats = (await (await service.get("/social/stats")).json()) as { sent: number };
  expect(Math.max(...accepted.values())).toBe(1);
  expect(stats.sent).toBe(accepted.size);
  const events = await exported(world);
  expect(events.filter(({ type }) => type === "RunAbandoned")).toHaveLength(3);
  // Each of the 60 recipients got the message, or the log has a failure: the intent was recorded, but its request was
  // never sent.
  const failed = events.filter(({ type }) => type === "DirectMessageFailed").length;
  expect(accepted.size + failed).toBe(60);
});

test("after kill -9 during 1,000 clicks each acknowledged one is recorded, with three outcomes", async () => {
  await using world = await openInstallation();
  world.sandbox.slack.limit = 100_000;
  world.sandbox.telegram.limit = 100_000;
  let service = await world.serve();
  const acknowledged = new Set<string>();
  let next = 0;
  const post = async (): Promise<void> => {
    while (next < 1_000) {
      const number = next++;
      const click = {
        event: "click",
        domain: "go.example",
        short_code: `c${number % 7}`,
        original_url: "https://shop.example/",
      };
      for (;;) {
        // The caller repeats the request with its key until it is answered, as callers do.
        const answer = await service
          .post(
            "/api/tracking/event",
            { ...click, user_agent: "Mozilla/5.0 Firefox/140.0" },
            { "idempotency-key": `k${number}` },
          )
          .catch(() => undefined);
        if (answer?.status === 202) {
          acknowledged.add(((await answer.json()) as { id: string }).id);
          break;
        }
        await Bun.sleep(50);
      }
    }
  };
  const killer = (async () => {
    for (const at of [250, 600]) {
      await until(
        () => Promise.resolve(acknowledged.size),
        (size) => size >= at,
      );
      await kill(service);
      service = await world.serve();
    }
  })();
  await Promise.all([killer, ...Array.from({ length: 16 }, post)]);
  await until(
    async () => (await (await service.get("/api/health")).json()) as { channels: Record<string, { pending: number }> },
    ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
  );

  const events = await exported(world);
  const clicks = events.filter(({ type }) => type === "LinkClicked") as unknown as Recorded<"LinkClicked">[];
  expect(acknowledged.size).toBe(1_000);
  expect(clicks).toHaveLength(1_000);
  expect(clicks.filter(({ id }) => !acknowledged.has(id))).toEqual([]);
  const channels = new Map<number, string[]>();
  for (const { type, data } of outcomesIn(events as unknown as Recorded[])) {
    if (type === "DispatchFailed") continue;
    channels.set(data.source, [...(channels.get(data.source) ?? []), data.channel]);
  }
  for (const { position } of clicks) expect(channels.get(position)?.sort()).toEqual(["ads", "chat", "messaging"]);
  expect(world.sandbox.meta.events.total).toBe(1_000);
  expect(world.sandbox.slack.messages.total).toBeGreaterThanOrEqual(1_000);
  expect(await world.execute("audit", "verify")).toMatchObject({ code: 0 });
});
