// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { SocialNetwork } from "../../src/networks/network.ts";
import { EMPTY_PAGES_MAX } from "../../src/outreach/sources/paged-source.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { SocialError } from "../../src/networks/network.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";

const MINUTE_MS = 60_000;
const rules = { ...RULES, requireConsent: false };

/** Maximum number of reads from the network. Without it, a defect would make the test loop for ever. */
const ASKED_MAX = 200;

async function worldOf(...ids: readonly string[]): Promise<OutreachHarness> {
  const world = await openOutreach();
  for (const id of ids) world.network.people.set(id, person(id));
  return world;
}

/** Replaces the answer of one of the network's methods. In the result, `asked` counts its calls. */
function replaced<M extends "inbox" | "followers">(world: OutreachHarness, method: M, answer: SocialNetwork[M]) {
  const counter = { asked: 0 };
  const bounded = (...asked: Parameters<SocialNetwork[M]>): unknown => {
    if (++counter.asked > ASKED_MAX) throw new Error("asked without end");
    return (answer as (...all: typeof asked) => unknown)(...asked);
  };
  Object.assign(world.network, { [method]: bounded });
  return counter;
}

describe("an inbox with endless cursors", () => {
  test.each([
    ["stays the same", () => "again"],
    ["repeats", (nth: number) => String(nth % 3)],
  ])("is read a bounded number of times if its cursor %s", async (_how, next) => {
    await using world = await worldOf("10");
    await world.list("10");
    let nth = 0;
    const inbox = replaced(world, "inbox", async () => ({ messages: [], next: next(nth++) }));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(inbox.asked).toBeLessThanOrEqual(EMPTY_PAGES_MAX);
  });

  test("is read for a bounded number of empty pages with new cursors", async () => {
    await using world = await worldOf("10");
    await world.list("10");
    let nth = 0;
    const inbox = replaced(world, "inbox", async () => ({ messages: [], next: String(nth++) }));
    const { run } = await world.start();
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(inbox.asked).toBe(EMPTY_PAGES_MAX);
  });

  test("blocks all sends if it repeats messages, because a stop may be missing", async () => {
    await using world = await worldOf("10", "11");
    world.network.receive("11", "hello");
    const { run, projector } = await world.start();
    await run();
    const known = projector.state("inbox").newest_id;
    world.time.jump(60 * MINUTE_MS);
    world.network.receive("11", "hello again");
    world.time.jump(60 * MINUTE_MS);
    const { inbox } = world.network;
    const asked = replaced(world, "inbox", async (token) => ({
      messages: (await inbox(token, { limit: 1 })).messages,
      next: "again",
    }));
    await world.list("10");
    expect(await run()).toMatchObject({ reason: "network_unavailable", sent: 0 });
    expect(asked.asked).toBeLessThan(50);
    expect(projector.state("inbox").newest_id).toBe(known);
  });

  test("blocks all sends if it has only empty pages, because a stop may follow", async () => {
    await using world = await worldOf("10", "11");
    world.network.receive("11", "hello");
    const { run } = await world.start();
    await run();
    world.time.jump(60 * MINUTE_MS);
    world.network.receive("10", "stop");
    for (let message = 0; message < 12; message++) world.network.receive("11", "hello again");
    world.time.jump(60 * MINUTE_MS);
    world.network.cursors = "empty";
    await world.list("10");
    expect(await run()).toMatchObject({ reason: "network_unavailable", sent: 0 });
    world.network.cursors = "onward";
    expect(await run()).toMatchObject({ reason: "completed", sent: 0, skipped: 1 });
  });

  test("is read for a bounded number of older pages", async () => {
    const ids = ["10", "11", "12"];
    await using world = await worldOf(...ids);
    for (const id of ids) world.network.receive(id, "hello");
    const { inbox } = world.network;
    const asked = replaced(world, "inbox", async (token, page) => {
      const read = await inbox(token, { limit: page.limit });
      return { ...read, next: "again" };
    });
    const { run } = await world.start({ sources: [openSource("inbound")] });
    expect(await run()).toMatchObject({ reason: "completed" });
    expect(asked.asked).toBeLessThanOrEqual(4);
    expect((await world.events("InboxRead")).at(-1)?.data).not.toHaveProperty("backlog");
  });
});

describe("a source with endless cursors", () => {
  const sources = [openSource("followers")];

  test.each([
    ["stays the same", () => "again"],
    ["repeats", (nth: number) => String(nth % 3)],
  ])("ends if its cursor %s", async (_how, next) => {
    await using world = await worldOf("10");
    let nth = 0;
    const asked = replaced(world, "followers", async () => ({ users: [person("10")], next: next(nth++) }));
    const { run } = await world.start({ sources, rules });
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(asked.asked).toBeLessThanOrEqual(4);
    expect((await world.events("SourceRead")).at(-1)?.data).not.toHaveProperty("next");
  });

  test("ends after a bounded number of empty pages", async () => {
    await using world = await worldOf();
    let nth = 0;
    const asked = replaced(world, "followers", async () => ({ users: [], next: String(nth++) }));
    const { run } = await world.start({ sources, rules });
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(asked.asked).toBe(EMPTY_PAGES_MAX);
  });

  test("is restarted once if it rejects each of its cursors", async () => {
    await using world = await worldOf("10", "11", "12", "13");
    const { followers } = world.network;
    const asked = replaced(world, "followers", async (token, id, page) => {
      if (page.cursor !== undefined) throw new SocialError("rejected", "told so");
      return followers(token, id, page);
    });
    const { run } = await world.start({ sources, rules });
    expect(await run()).toMatchObject({ reason: "request_rejected", sent: 2 });
    expect(asked.asked).toBe(4);
  });
});

test.each(["inbox", "followers"] as const)(
  "the run's time limit ends the read of the %s between two pages",
  async (method) => {
    await using world = await worldOf("10");
    const limit = Promise.withResolvers<void>();
    const runMaxMs = 1_234_567;
    const { run } = await world.start({
      runMaxMs,
      sleep: (ms, signal) => (ms === runMaxMs ? limit.promise : world.time.sleep(ms, signal)),
      sources: [openSource("followers")],
      rules,
    });
    if (method === "inbox") {
      await run();
      await world.append([{ type: "InboxRead", data: { run_id: "r", messages: 0, newest_id: "1" } }]);
    }
    let nth = 0;
    // Each page is new, so that only the limit ends the reading.
    const asked = replaced(world, method, async () => {
      if (++nth === 3) limit.resolve();
      const createdAt = world.time.now() - nth * MINUTE_MS;
      const message = { id: String(10_000 - nth), senderId: "10", senderUsername: "user_10", text: "hello", createdAt };
      const users = [person(String(100 + nth), { receivesOurDm: false })];
      return { messages: [message], users, next: String(nth) };
    });
    expect(await run()).toMatchObject({ reason: "time_limit" });
    expect(asked.asked).toBeLessThanOrEqual(4);
  },
);
