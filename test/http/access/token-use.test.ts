// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { ApiToken } from "../../../src/config/parse-api-tokens.ts";
import { recordTokenUse } from "../../../src/http/access/token-use.ts";
import { createEventLog, type EventLog } from "../../../src/log/event-log.ts";
import { openCommands } from "../../harness/in-process/commands.ts";
import { SILENT, toLogContext } from "../../harness/in-process/temporary-log.ts";

const DAY_MS = 86_400_000;
const MIDNIGHT = Date.parse("2026-03-01T00:00:00.000Z");
const WEB: ApiToken = { name: "web", sha256: "3f2a9c".padEnd(64, "0") };
const OPS: ApiToken = { name: "ops", sha256: "9c3f2a".padEnd(64, "0") };

/**
 * Opens a log. The result can start one more recorder of token use on that log, as each instance has one. `replaced`
 * overrides methods of the log.
 */
async function openWorld(replaced: Partial<EventLog> = {}) {
  const world = await openCommands();
  const clock = { now: MIDNIGHT };
  const eventLog = { ...createEventLog(world.store, () => crypto.randomUUID()), ...replaced };
  const warned: string[] = [];
  let passed = Promise.withResolvers<void>();
  return {
    clock,
    eventLog,
    warned,
    pass(): void {
      passed.resolve();
      passed = Promise.withResolvers();
    },
    open: () =>
      recordTokenUse(
        toLogContext(eventLog, {
          async sleep(_ms, signal) {
            signal.addEventListener("abort", () => passed.resolve());
            if (!signal.aborted) await passed.promise;
          },
          logger: { ...SILENT, warn: (text) => void warned.push(text) },
        }),
      ),
    recorded: async () => (await Array.fromAsync(world.store.read({ types: ["TokenUsed"] }))).map(({ data }) => data),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

test("a token's use is recorded once per UTC day, for any number of requests and instances", async () => {
  await using world = await openWorld();
  for (const note of [world.open(), world.open(), world.open()]) {
    world.clock.now = MIDNIGHT;
    for (let request = 0; request < 50; request++) note.note(WEB, world.clock.now);
    note.note(OPS, world.clock.now);
    world.clock.now = MIDNIGHT + DAY_MS - 1;
    note.note(WEB, world.clock.now);
    world.clock.now = MIDNIGHT + DAY_MS;
    note.note(WEB, world.clock.now);
    await note[Symbol.asyncDispose]();
  }
  expect(await world.recorded()).toEqual([
    { name: "web", token_id: "3f2a9c000000", day: "2026-03-01" },
    { name: "ops", token_id: "9c3f2a000000", day: "2026-03-01" },
    { name: "web", token_id: "3f2a9c000000", day: "2026-03-02" },
  ]);
});

test("a failed recording is logged once and retried by a later use", async () => {
  let tries = 0;
  await using world = await openWorld({
    append: async () => {
      tries += 1;
      throw new Error("out of reach");
    },
  });
  await using use = world.open();
  for (let request = 0; request < 50; request++) use.note(WEB, world.clock.now);
  await Bun.sleep(0);
  expect([tries, world.warned]).toEqual([1, ["the use of a token could not be recorded"]]);
  world.pass();
  await Bun.sleep(0);
  use.note(WEB, world.clock.now);
  await Bun.sleep(0);
  expect(tries).toBe(2);
});
