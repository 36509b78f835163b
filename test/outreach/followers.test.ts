import { expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { parseTemplate } from "../../src/outreach/message.ts";
import { followersSource } from "../../src/outreach/sources/followers.ts";
import { listSource } from "../../src/outreach/sources/list.ts";
import { OWN, person } from "./social-network.ts";
import { openWorld } from "./world.ts";

const rules = { template: parseTemplate("Hi {{name}}"), requireConsent: false, dailyLimit: 100 };

async function worldOfFollowers(...ids: readonly string[]) {
  const world = await openWorld();
  for (const id of ids) world.network.people.set(id, person(id));
  const credentials = { use: <T>(call: (token: string) => Promise<T>) => call("token") };
  const followers = followersSource(world.network, { ...credentials, send: (call) => call("token") }, () => OWN.id);
  return { world, followers };
}

test("every page of followers is read, and nobody is asked about again", async () => {
  const { world, followers } = await worldOfFollowers("10", "11", "12", "13", "14");
  await using _world = world;
  const { run } = await world.start({ sources: [followers], rules });
  expect(await run()).toMatchObject({ reason: "completed", sent: 5 });
  expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 4"]);
});

test("pages behind the day's limit are not read: they cost money", async () => {
  const { world, followers } = await worldOfFollowers("10", "11", "12", "13", "14");
  await using _world = world;
  const { run } = await world.start({ sources: [followers], rules: { ...rules, dailyLimit: 1 } });
  expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 1 });
  expect(world.network.reads).toEqual(["followers "]);
});

test("a 429 on a later page is waited for, and the run goes on from there", async () => {
  const { world, followers } = await worldOfFollowers("10", "11", "12");
  await using _world = world;
  world.network.faults.push(
    undefined,
    new SocialError("rate_limited", "wait", { retryAt: world.time.now() + 900_000 }),
  );
  const { run } = await world.start({ sources: [followers], rules });
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 2"]);
});

test("a dry run does not wait for a 429, and does not ask again at once either", async () => {
  const { world, followers } = await worldOfFollowers("10");
  await using _world = world;
  world.network.faults.push(new SocialError("rate_limited", "wait", { retryAt: world.time.now() + 900_000 }));
  const { run } = await world.start({ sources: [followers], rules });
  expect((await run({ dryRun: true })).preview).toMatchObject({ reason: "network_unavailable", would_send: [] });
  expect(world.network.reads).toEqual(["followers "]);
});

test("who is in the list and follows us too gets one message, and no skip in that run", async () => {
  const { world, followers } = await worldOfFollowers("10", "11");
  await using _world = world;
  await world.append([
    {
      type: "RecipientAdded",
      data: { recipient: { username: "user_11" }, basis: "opt_in", fields: {}, source: "list" },
    },
  ]);
  const instance = await world.start();
  const list = listSource(() => instance.projector.state("contacts"));
  const { run } = await world.start({ sources: [list, followers], rules });
  expect(await run()).toMatchObject({ sent: 2, skipped: 0 });
  expect(world.network.accepted.map(({ recipientId }) => recipientId)).toEqual(["11", "10"]);
});

test("followers without consent are skipped, once", async () => {
  const { world, followers } = await worldOfFollowers("10", "11", "12");
  await using _world = world;
  const { run } = await world.start({ sources: [followers], rules: { ...rules, requireConsent: true } });
  expect(await run()).toMatchObject({ sent: 0, skipped: 3 });
  expect(await run()).toMatchObject({ sent: 0, skipped: 0 });
});
