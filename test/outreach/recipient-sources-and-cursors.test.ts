// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { SocialError } from "../../src/networks/network.ts";
import { parseTemplate } from "../../src/template/template.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { person } from "../harness/in-process/social-network.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const rules = { ...RULES, template: parseTemplate("Hi {{name}}"), requireConsent: false };
const followers = openSource("followers");

async function worldOf(...ids: readonly string[]): Promise<OutreachHarness> {
  const world = await openOutreach();
  for (const id of ids) world.network.people.set(id, person(id));
  return world;
}

const reached = ({ network }: OutreachHarness): string[] => network.accepted.map(({ recipientId }) => recipientId);

test("every page of followers is read, without another look-up of a follower", async () => {
  await using world = await worldOf("10", "11", "12", "13", "14");
  const { run } = await world.start({ sources: [followers], rules });
  expect(await run()).toMatchObject({ reason: "completed", sent: 5 });
  expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 4"]);
});

test("no more followers are read than the quota allows", async () => {
  await using world = await worldOf("10", "11", "12", "13", "14");
  world.network.pageMax = 100;
  const { run } = await world.start({ sources: [followers], rules: { ...rules, dailyLimit: 3 } });
  expect(await run()).toMatchObject({ reason: "daily_limit_reached", sent: 3, usage: { followers: 3, users: 0 } });
  expect(world.network.reads).toEqual(["followers "]);
});

test("no more listed recipients are looked up than the quota allows", async () => {
  await using world = await worldOf("10", "11", "12", "13", "14");
  world.network.people.set("10", person("10", { receivesOurDm: false }));
  await world.list("10", "11", "12", "13", "14");
  const { run } = await world.start({ rules: { ...rules, dailyLimit: 2 } });
  expect(await run()).toMatchObject({
    reason: "daily_limit_reached",
    sent: 2,
    skipped: 1,
    usage: { users: 3, sends: 2 },
  });
  expect(world.network.reads).toEqual(["usersById 10,11", "usersById 12"]);
});

test("a dry run reads no more than a run, and stores no cursor", async () => {
  await using world = await worldOf("10", "11", "12", "13", "14");
  const { run } = await world.start({ sources: [followers], rules: { ...rules, dailyLimit: 2 } });
  const rehearsed = await run({ dryRun: true });
  expect(rehearsed).toMatchObject({
    reason: "daily_limit_reached",
    usage: { followers: 2, sends: 0 },
    preview: { estimate: { followers: 2, sends: 2 } },
  });
  expect(await world.events("SourceRead")).toEqual([]);
  const real = await run();
  expect(real).toMatchObject({ sent: 2, usage: { followers: 2, sends: 2 } });
  expect(rehearsed.preview?.estimate.usd).toBe(real.usage.usd);
});

test("a run waits for a 429 on a later page, and continues there", async () => {
  await using world = await worldOf("10", "11", "12");
  const retryAt = world.time.now() + 900_000;
  world.network.faults.push(undefined, new SocialError("rate_limited", "wait", { retryAt }));
  const { run } = await world.start({ sources: [followers], rules });
  expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
  expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 2"]);
  const until = new Date(retryAt).toISOString();
  expect(await world.events("RunPaused")).toMatchObject([{ data: { reason: "rate_limited", until } }]);
});

test("a dry run ends at a 429 without a retry", async () => {
  await using world = await worldOf("10");
  world.network.faults.push(new SocialError("rate_limited", "wait", { retryAt: world.time.now() + 900_000 }));
  const { run } = await world.start({ sources: [followers], rules });
  expect((await run({ dryRun: true })).preview).toMatchObject({ reason: "network_unavailable", would_send: [] });
  expect(world.network.reads).toEqual(["followers "]);
});

test("a rejected read ends the run as request_rejected, and is announced", async () => {
  await using world = await worldOf("10");
  world.network.faults.push(new SocialError("rejected", "told so"));
  const { run, announced } = await world.start({ sources: [openSource("list_members", { listId: "7" })], rules });
  expect(await run()).toMatchObject({ reason: "request_rejected", sent: 0 });
  expect(announced).toEqual(["outreach stopped: request_rejected"]);
});

test("sources are merged in order, and a recipient of two gets one message and no skip", async () => {
  await using world = await worldOf("10", "11", "12");
  world.network.lists.set("7", ["12", "10"]);
  await world.append([addedOf({ username: "user_11" })]);
  const { run } = await world.start({
    sources: [openSource("list"), openSource("list_members", { listId: "7" }), followers],
    rules,
  });
  expect(await run()).toMatchObject({ sent: 3, skipped: 0 });
  expect(reached(world)).toEqual(["11", "12", "10"]);
});

test("followers without consent are skipped, once", async () => {
  await using world = await worldOf("10", "11", "12");
  const { run } = await world.start({ sources: [followers], rules: { ...rules, requireConsent: true } });
  expect(await run()).toMatchObject({ sent: 0, skipped: 3 });
  expect(await run()).toMatchObject({ sent: 0, skipped: 0 });
});

describe("a run after an earlier one", () => {
  const limited = { sources: [followers], rules: { ...rules, dailyLimit: 2 } };

  test("continues at the stored cursor, also in another process", async () => {
    await using world = await worldOf("10", "11", "12", "13", "14");
    expect(await (await world.start(limited)).run()).toMatchObject({ sent: 2 });
    world.time.jump(86_400_000);
    expect(await (await world.start(limited)).run()).toMatchObject({ sent: 2 });
    world.time.jump(86_400_000);
    expect(await (await world.start(limited)).run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 4"]);
  });

  test("reads an unfinished page again", async () => {
    await using world = await worldOf("10", "11", "12", "13");
    world.network.answers.push(undefined, undefined, undefined, { stop: "credits_depleted" });
    const { run } = await world.start({ sources: [followers], rules });
    expect(await run()).toMatchObject({ reason: "credits_depleted", sent: 3, failed: 1 });
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(world.network.reads).toEqual(["followers ", "followers 2", "followers 2"]);
  });

  test("reads only new followers once all were read", async () => {
    await using world = await worldOf("10", "11", "12", "13");
    const { run } = await world.start({ sources: [followers], rules });
    expect(await run()).toMatchObject({ sent: 4 });
    const before = [...world.network.people];
    world.network.people.clear();
    for (const [id, user] of [["20", person("20")] as const, ...before]) world.network.people.set(id, user);
    world.network.reads.length = 0;
    expect(await run()).toMatchObject({ reason: "completed", sent: 1 });
    expect(world.network.reads).toEqual(["followers "]);
  });

  test("does not read all followers again if the newest has left", async () => {
    await using world = await worldOf("10", "11", "12", "13", "14", "15");
    const { run } = await world.start({ sources: [followers], rules });
    expect(await run()).toMatchObject({ sent: 6 });
    world.network.people.delete("10");
    world.network.reads.length = 0;
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(world.network.reads).toEqual(["followers "]);
  });

  test("finds new followers behind pages of known recipients", async () => {
    await using world = await worldOf("10", "11", "12");
    const daily = { sources: [followers], rules: { ...rules, dailyLimit: 10, requireConsent: true } };
    const nextRun = async () => {
      world.time.jump(86_400_000);
      return (await world.start(daily)).run();
    };
    await nextRun();
    // Ninety new followers: the forty newest are suppressed already, and the others have opted in elsewhere.
    const unwanted = Array.from({ length: 40 }, (_, number) => String(100 + number));
    const wanted = Array.from({ length: 50 }, (_, number) => String(200 + number));
    await world.append(
      unwanted.map((id) => ({ type: "RecipientSuppressed", data: { recipient: { id }, reason: "by_hand" } })),
    );
    await world.list(...wanted);
    const before = [...world.network.people];
    world.network.people.clear();
    for (const id of [...unwanted, ...wanted]) world.network.people.set(id, person(id));
    for (const [id, user] of before) world.network.people.set(id, user);
    world.network.pageMax = 10;
    const sent = [];
    for (let day = 0; day < 6; day++) sent.push((await nextRun()).sent);
    expect(sent).toEqual([10, 10, 10, 10, 10, 0]);
    expect(reached(world)).toEqual(wanted);
  });

  test("does not read all followers again if whole pages of the newest have left", async () => {
    await using world = await worldOf("10", "11", "12", "13", "14", "15");
    const { run } = await world.start({ sources: [followers], rules });
    expect(await run()).toMatchObject({ sent: 6 });
    for (const id of ["10", "11", "12"]) world.network.people.delete(id);
    world.network.reads.length = 0;
    expect(await run()).toMatchObject({ reason: "completed", sent: 0 });
    expect(world.network.reads).toEqual(["followers "]);
  });

  test("restarts the pass if the network rejects the cursor", async () => {
    await using world = await worldOf("10", "11", "12", "13");
    expect(await (await world.start(limited)).run()).toMatchObject({ sent: 2 });
    world.time.jump(86_400_000);
    world.network.faults.push(new SocialError("rejected", "told so"));
    const { run } = await world.start({ sources: [followers], rules });
    expect(await run()).toMatchObject({ reason: "completed", sent: 2 });
    expect(world.network.reads).toEqual(["followers ", "followers 2", "followers ", "followers 2"]);
  });

  test("continues a search after the newest known post", async () => {
    await using world = await worldOf("10", "11", "12");
    world.network.post("10", "tracking links");
    world.network.post("11", "links, links");
    world.network.post("10", "more links");
    const { run } = await world.start({ sources: [openSource("search", { searchQuery: "links" })], rules });
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, usage: { posts: 3 } });
    expect(reached(world)).toEqual(["10", "11"]);
    world.network.post("12", "links at last");
    expect(await run()).toMatchObject({ reason: "completed", sent: 1, usage: { posts: 1 } });
  });
});
