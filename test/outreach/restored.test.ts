import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { codec, type Event } from "../../events/catalog.ts";
import { createJournal } from "../../src/journal.ts";
import { SocialError } from "../../src/networks/network.ts";
import { restoredAt } from "../../src/outreach/restored.ts";
import { person } from "./social-network.ts";
import { openWorld, RULES } from "./world.ts";

const LOSS = { reason: "lost_tail", found_position: 5, found_hash: "" } as const;
const DAY_MS = 86_400_000;

test("on the day of a restore nobody is written to, and the operator is told why", async () => {
  await using world = await openWorld();
  world.network.people.set("10", person("10"));
  await world.list("10");
  await world.append([{ type: "LogLossAccepted", data: LOSS }]);
  const { run, announced } = await world.start();
  expect(await run()).toMatchObject({ reason: "log_restored", sent: 0 });
  expect(announced).toEqual(["outreach stopped: log_restored"]);
  world.time.jump(DAY_MS);
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
});

test("who has a message that the restored log does not know of gets no second one", async () => {
  await using world = await openWorld();
  for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
  // Sent after the backup, so that the log has forgotten it.
  await world.network.sendDm("token", "11", "Hi Name 11");
  world.network.receive("12", "hello");
  await world.list("10", "11", "12");
  await world.append([{ type: "LogLossAccepted", data: LOSS }]);
  world.time.jump(DAY_MS);
  const { run } = await world.start();
  expect(await run()).toMatchObject({ sent: 2, skipped: 1 });
  expect(await world.events("DirectMessageSkipped")).toMatchObject([
    { data: { recipient: { id: "11" }, reason: "already_contacted" } },
  ]);
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["11", "10", "12"]);
});

test("an answer of many messages does not hide ours, and who cannot be read is passed over", async () => {
  await using world = await openWorld();
  for (const id of ["10", "11", "12"]) world.network.people.set(id, person(id));
  await world.network.sendDm("token", "11", "Hi Name 11");
  for (let answer = 0; answer < 7; answer++) world.network.receive("11", "hello");
  await world.list("10", "11", "12");
  await world.append([{ type: "LogLossAccepted", data: LOSS }]);
  world.time.jump(DAY_MS);
  const { conversation } = world.network;
  world.network.conversation = (token, id, limit) =>
    id === "10" ? Promise.reject(new SocialError("rejected", "told so")) : conversation(token, id, limit);
  const { run } = await world.start();
  expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["11", "12"]);
});

test("a log that was never restored looks at no conversation before a message", async () => {
  await using world = await openWorld();
  world.network.people.set("10", person("10"));
  await world.list("10");
  const { run } = await world.start({ rules: RULES });
  await run();
  expect(world.network.reads.filter((read) => read.startsWith("conversation"))).toEqual([]);
});

test("a copy that was opened was restored when it was first written to, and its own copies again", async () => {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-restored-"));
  let now = Date.parse("2026-03-01T08:00:00.000Z");
  const open = (name: string) => openSqliteStore<Event>({ file: join(directory, name), codec, clock: () => now });
  const fact = { type: "RunRefused", data: { reason: "daily_limit_reached", day: "2026-03-01", used: 1 } } as const;
  let ids = 0;
  const add = async (store: Awaited<ReturnType<typeof open>>, count: number): Promise<void> => {
    for (let event = 0; event < count; event++)
      await createJournal(store, () => `id-${++ids}`).append("outreach", [fact], {});
  };
  let from = "log.sqlite";
  {
    await using store = await open(from);
    expect(await restoredAt(store)).toBeUndefined();
    await add(store, 5);
    expect(await restoredAt(store)).toBeUndefined();
  }
  for (const copy of ["first.sqlite", "second.sqlite"]) {
    {
      await using store = await open(from);
      await store.backup(join(directory, copy));
    }
    now += 3_600_000;
    await using store = await open(copy);
    await add(store, 1);
    const restored = now;
    now += 60_000;
    await add(store, 4);
    expect(await restoredAt(store)).toBe(restored);
    from = copy;
  }
  rmSync(directory, { recursive: true });
});
