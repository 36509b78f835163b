// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { Recipient } from "../../events/outreach.ts";
import { importRecipients } from "../../src/recipients/import.ts";
import { importSuppressions } from "../../src/recipients/import-suppressions.ts";
import { parseRecipients, type SuppressionRow } from "../../src/recipients/parse-imported-lists.ts";
import { suppress } from "../../src/recipients/suppress.ts";
import { SocialError, type SocialNetwork } from "../../src/networks/network.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { METADATA } from "../harness/in-process/temporary-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { openOutreach, RULES, type OutreachHarness } from "../harness/in-process/simulated-outreach-processes.ts";
import { person } from "../harness/in-process/social-network.ts";

const ANN = { id: "10", username: "user_10" };
const OPTIONS = { chunkRows: 10, signal: new AbortController().signal };

type Started = Awaited<ReturnType<OutreachHarness["start"]>>;

const depsOf = ({ context }: Started) => ({
  ...context,
  hashesOf: RULES.hashes,
  findLinkKeys: RULES.findLinkKeys,
  sleep: async () => {},
  random: () => 0,
});

/** Imports a suppression list that contains only the hash of one id or handle. */
function suppressByHash(instance: Started, name: Recipient): Promise<unknown> {
  const rows = RULES.hashes(name).map((hash): SuppressionRow => ({ line: 1, suppression: { hash, reason: "list" } }));
  return importSuppressions(depsOf(instance), rows, METADATA, OPTIONS);
}

/**
 * Renames Ann, imports her under the new handle and makes two runs. Returns the number of messages that the network
 * accepted.
 */
async function renameAndRun({ network, time, append }: OutreachHarness, { run }: Started) {
  network.people.set(ANN.id, person(ANN.id, { username: "ann_new" }));
  await append([addedOf({ id: ANN.id, username: "ann_new" })]);
  time.jump(60 * 60_000);
  network.receive(ANN.id, "hello");
  await run();
  await run();
  return network.accepted.length;
}

const handle = { username: ANN.username };

describe("a recipient with a suppressed hash of their handle gets no message under a new handle", () => {
  test.each([
    ["if both names were known before", [addedOf(ANN)], false],
    ["if a message has shown the handle", [addedOf({ id: ANN.id }), received("10")], false],
    ["if only the handle was known until they wrote", [addedOf(handle)], true],
  ])("%s", async (_how, before, writes) => {
    await using world = await openOutreach();
    world.network.people.set(ANN.id, person(ANN.id));
    await world.append(before);
    const instance = await world.start();
    await suppressByHash(instance, handle);
    if (writes) world.network.receive(ANN.id, "hello");
    await instance.run();
    expect(await renameAndRun(world, instance)).toBe(0);
    const named = (await world.events("RecipientSuppressed")).filter(({ data }) => data.recipient !== undefined);
    const hashes = named.flatMap(({ data }) => data.hashes ?? []);
    expect(hashes).toEqual(expect.arrayContaining([...RULES.hashes(ANN)]));
  });

  test("if they are imported afterwards", async () => {
    await using world = await openOutreach();
    world.network.people.set(ANN.id, person(ANN.id));
    const instance = await world.start();
    await suppressByHash(instance, handle);
    const { rows } = parseRecipients("id,username,basis\n10,user_10,opt_in", "csv", { now: world.time.now() });
    await importRecipients(depsOf(instance), rows, METADATA, OPTIONS);
    expect(await world.events("RecipientSuppressed")).toMatchObject([
      {},
      { data: { recipient: ANN, reason: "hash", hashes: [...RULES.hashes(ANN)] } },
    ]);
    await importRecipients(depsOf(instance), rows, METADATA, OPTIONS);
    expect(await world.events("RecipientSuppressed")).toHaveLength(2);
    expect(await renameAndRun(world, instance)).toBe(0);
  });

  test("if a run skips them, also with a recorded skip", async () => {
    await using world = await openOutreach("10");
    const instance = await world.start({ sources: [openSource("list")] });
    await suppressByHash(instance, handle);
    const skipped = { run_id: "r", recipient: { id: ANN.id }, reason: "suppressed" } as const;
    await world.append([{ type: "DirectMessageSkipped", data: skipped }]);
    await instance.run();
    expect(await renameAndRun(world, instance)).toBe(0);
    expect(await world.events("DirectMessageSkipped")).toHaveLength(1);
  });

  test("if a dry run and then a message names them", async () => {
    await using world = await openOutreach("10");
    const instance = await world.start();
    await suppressByHash(instance, handle);
    await instance.run({ dryRun: true });
    expect(await world.events("RecipientSuppressed")).toHaveLength(1);
    world.network.receive(ANN.id, "hello");
    await instance.run({ dryRun: true });
    expect(await renameAndRun(world, instance)).toBe(0);
  });

  test("if they reply with a stop word, which is recorded as opt_out", async () => {
    await using world = await openOutreach();
    world.network.people.set(ANN.id, person(ANN.id));
    const instance = await world.start();
    await suppressByHash(instance, handle);
    const message_id = world.network.receive(ANN.id, "STOP");
    await instance.run();
    expect(await world.events("RecipientSuppressed")).toMatchObject([
      {},
      { data: { recipient: ANN, reason: "opt_out", message_id, hashes: [...RULES.hashes(ANN)] } },
    ]);
    await world.list("10");
    expect(await renameAndRun(world, instance)).toBe(0);
  });
});

describe("a suppression by an unknown handle", () => {
  const asking = (network: Pick<SocialNetwork, "usersByUsername">) => ({
    network,
    tokens: { use: <T>(call: (token: string) => Promise<T>) => call("token") },
  });

  test("looks the handle up at the network, and applies to the id", async () => {
    await using world = await openOutreach("10");
    const instance = await world.start();
    const deps = { ...depsOf(instance), account: asking(world.network) };
    expect(await suppress(deps, "user_10", METADATA)).toEqual({ isKnown: false, repeated: false });
    expect(await world.events("RecipientSuppressed")).toMatchObject([
      { data: { recipient: { username: "user_10" } } },
      { data: { recipient: ANN, reason: "by_hand", hashes: [...RULES.hashes(ANN)] } },
    ]);
    expect(await renameAndRun(world, instance)).toBe(0);
    await suppress(deps, "user_10", METADATA);
    expect(world.network.reads).toEqual(["usersByUsername user_10"]);
  });

  test("applies to the handle if the network is unavailable", async () => {
    await using world = await openOutreach("10");
    const instance = await world.start();
    const failing = [new SocialError("unavailable", "down"), new Error("no vault")];
    for (const fault of failing) {
      const network = { usersByUsername: () => Promise.reject(fault) };
      await suppress({ ...depsOf(instance), account: asking(network) }, "user_10", METADATA);
    }
    expect(await world.events("RecipientSuppressed")).toMatchObject([{ data: { recipient: { username: "user_10" } } }]);
    await instance.run();
    expect(world.network.accepted).toEqual([]);
  });
});

function received(id: string) {
  const recipient = { id, username: `user_${id}` };
  const data = { recipient, message_id: "m", received_at: "2026-03-01T07:00:00.000Z" };
  return { type: "DirectMessageReceived", data } as const;
}
