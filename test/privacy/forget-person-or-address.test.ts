// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Snapshot } from "eventstore-lite";
import { findContact, isHeldBy } from "../../projections/contact-identity.ts";
import { createStates } from "../../projections/fold-states.ts";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import type { Recipient } from "../../events/outreach.ts";
import { replay } from "../../src/commands/replay.ts";
import { foldRange } from "../../src/projector/fold-range.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { isSuppressed } from "../../src/outreach/decide.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import { createEraseHandler } from "../../src/privacy/delete-erased-and-expired-keys.ts";
import { findEncrypted } from "../../src/privacy/forget-person-or-address.ts";
import { startProjector } from "../../src/projector/projector.ts";
import { capture } from "../harness/capture-command.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { encrypted } from "./encrypt-as-the-log-does.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { forget, forgetClicks } from "../harness/in-process/operation-commands.ts";

const ANN = { id: "1777000000000001001", username: "ann_builds" };
const BEA = { id: "1777000000000001002", username: "bea_codes" };

const imported = (username: string, name: string): NewEvent => ({
  type: "RecipientAdded",
  data: { recipient: { username }, name, basis: "opt_in", fields: { company: `${name} & Sons` }, source: "list" },
});

const messaged = (attempt_id: string, recipient: typeof ANN, text: string): readonly NewEvent[] => {
  const attempt = { attempt_id, run_id: "r1", recipient };
  return [
    { type: "DirectMessageAttempted", data: { ...attempt, text, variant: "A", day: "2025-11-20" } },
    { type: "DirectMessageSent", data: { ...attempt, message_id: `message-${attempt_id}`, settled_by: "answer" } },
  ];
};

const clicked = (ip: string, user_agent: string): NewEvent =>
  clickOf({ original_url: `https://shop.example/tea?for=${user_agent}`, ip, user_agent });

let world: CommandHarness;
beforeEach(async () => {
  world = await openCommands();
  await world.append(STREAMS.outreach, [
    imported("ann_builds", "Ann Bell"),
    imported("bea_codes", "Bea Cole"),
    ...messaged("a1", ANN, "Hi Ann Bell, here it is"),
    ...messaged("a2", BEA, "Hi Bea Cole, here it is"),
    {
      type: "DirectMessageReceived",
      data: { recipient: ANN, message_id: "message-9", received_at: "2025-11-20T11:00:00.000Z" },
    },
  ]);
  await world.append(STREAMS.link("go.example", "x"), [
    clicked("203.0.113.7", "ann/1"),
    clicked("203.0.113.8", "bea/1"),
  ]);
});
afterEach(() => world[Symbol.asyncDispose]());

/** Returns the log as text, as a process sees it after it has read the log's end and so knows of all erasures. */
async function shown(): Promise<string> {
  await Array.fromAsync(world.store.read({ backwards: true, limit: 1 }));
  const events = await Array.fromAsync(world.store.read());
  return events.map((event) => JSON.stringify(event)).join("\n");
}

describe("forget RECIPIENT", () => {
  test.each([
    ["yes", 0],
    ["Yes ", 0],
    ["", 1],
    ["y", 1],
    ["no", 1],
  ])("asks on a terminal, and erases only after yes: %j", async (typed, code) => {
    const asked: string[] = [];
    const ask = async (question: string) => (asked.push(question), typed);
    const answer = await capture(forget, ["ann_builds"], { env: world.env, ask });
    expect([answer.code, asked]).toEqual([code, ["Erase ann_builds for good? This cannot be undone. Type yes: "]]);
    expect(answer.err).toBe(code === 0 ? "" : "nothing was done\n");
    expect((await shown()).includes("Ann Bell")).toBe(code === 1);
  });

  test("needs --yes without a terminal", async () => {
    expect(await world.run(forget, "ann_builds").catch((fault: unknown) => fault)).toMatchObject({
      kind: "usage",
      message: "recipients forget asks for confirmation: add --yes, or run it on a terminal",
    });
    expect(await shown()).toContain("Ann Bell");
  });

  test("erases all data of the recipient, and none of the others", async () => {
    expect(await shown()).toMatch(/Ann Bell/);
    expect(await world.run(forget, "@Ann_Builds", "--yes")).toMatchObject({
      code: 0,
      out: expect.stringContaining("4 events"),
    });
    const text = await shown();
    expect(text).not.toMatch(/ann_builds|1777000000000001001|Ann Bell|message-a1|message-9/i);
    expect(text).toContain('"erased":true');
    for (const other of ["bea_codes", "1777000000000001002", "Bea Cole & Sons", "Hi Bea Cole, here it is", "ann/1"]) {
      expect(text).toContain(other);
    }
    expect(await world.store.verify()).toMatchObject({ ok: true });
  });

  test("erases the recipient from the list of a dry run, also if they were met nowhere else", async () => {
    const [CAT, DAN] = [
      { id: "1777000000000001003", username: "cat_sings" },
      { id: "1777000000000001004", username: "dan_runs" },
    ];
    await world.append(STREAMS.outreach, [
      { type: "DryRunRecipientListed", data: { run_id: "r2", recipient: ANN, variant: "A", name: "Ann Bell" } },
      { type: "DryRunRecipientListed", data: { run_id: "r2", recipient: CAT, variant: "A", name: "Cat Lee" } },
      { type: "DryRunRecipientListed", data: { run_id: "r2", recipient: DAN, reason: "protected" } },
    ]);
    await world.run(forget, "cat_sings", "--yes");
    await world.run(forget, "ann_builds", "--yes");
    const all = await shown();
    for (const name of ["Cat Lee", "cat_sings", CAT.id, "Ann Bell", ANN.id]) expect(all).not.toContain(name);
    expect(all).toContain("dan_runs");
    expect(await world.run(replay)).toMatchObject({ code: 0, out: expect.not.stringContaining("differences,") });
  });

  test("erases events about the recipient that are appended later", async () => {
    await world.run(forget, "1777000000000001001", "--yes");
    await shown();
    // A run may have been sending a message to the recipient during the erasure. Appends what it would record.
    await world.append(STREAMS.outreach, [imported("ann_builds", "Ann Bell"), ...messaged("a3", ANN, "Hi again Ann")]);
    expect(await shown()).not.toMatch(/ann_builds|1777000000000001001|Ann[ "]/);
  });

  test("keeps later events about the recipient out of the writer's states", async () => {
    await using projector = await startProjector(world.store, { erase: createEraseHandler(world.store.keyring) });
    await world.run(forget, "1777000000000001001", "--yes");
    await projector.until((await world.store.head()).position);
    await world.append(STREAMS.outreach, [imported("ann_builds", "Ann Bell")]);
    await projector.until((await world.store.head()).position);
    expect(projector.state("contacts").people.size).toBe(1);
  });

  test("suppresses the recipient by id, and replay finds no difference afterwards", async () => {
    await world.run(forget, "ann_builds", "--yes");
    const [last] = await Array.fromAsync(world.store.read({ backwards: true, limit: 1 }));
    expect(last).toMatchObject({ type: "PersonForgotten", data: { hashes: [expect.any(String)] } });
    expect(await world.run(replay)).toMatchObject({ code: 0, err: "" });
    expect(await world.run(replay)).toMatchObject({ code: 0, out: expect.not.stringContaining("differences,") });
    expect(await world.run(forget, "ann_builds", "--yes").catch(String)).toContain("No recipient has that name");
  });

  test("gives a running projector the states of a rebuild, without the recipient", async () => {
    await using projector = await startProjector(world.store, { erase: createEraseHandler(world.store.keyring) });
    expect(projector.state("contacts").people.size).toBe(2);
    await world.run(forget, "ann_builds", "--yes");
    // The projector reads this event in the same batch as the event of the erasure.
    await world.append(STREAMS.outreach, messaged("a4", BEA, "Bea again"));
    await projector.until((await world.store.head()).position);
    const rebuilt = createStates(PROJECTION_NAMES);
    await foldRange(world.store, rebuilt, { from: 1, to: projector.position });
    for (const name of PROJECTION_NAMES) expect(projector.state(name)).toEqual(rebuilt.get(name) as never);
    expect(Bun.inspect(rebuilt.all(), { depth: 9 })).not.toMatch(/ann_builds|1777000000000001001|Ann[ "]/);
    expect(projector.state("contacts").people.size).toBe(1);
  });
});

describe("forget of a recipient with a handle that another recipient took over", () => {
  const TAKER = { id: "1777000000000001003", username: "ann_builds" };
  const written = (recipient: typeof ANN): NewEvent => ({
    type: "DirectMessageReceived",
    data: { recipient, message_id: `from ${recipient.id}`, received_at: "2025-11-20T12:00:00.000Z" },
  });

  test("keeps the other recipient readable and not suppressed", async () => {
    await world.append(STREAMS.outreach, [
      written({ ...ANN, username: "ann_anew" }),
      imported("ann_builds", "Tess Taker"),
      ...messaged("a5", TAKER, "Hi Tess Taker"),
    ]);
    expect(await world.run(forget, ANN.id, "--yes")).toMatchObject({ code: 0 });
    await shown();
    await world.append(STREAMS.outreach, [imported("ann_builds", "Tess Taker the Second"), written(TAKER)]);
    const text = await shown();
    expect(text).not.toMatch(/ann_anew|1777000000000001001|Ann Bell|message-a1|message-9/i);
    for (const theirs of ["Tess Taker & Sons", "Hi Tess Taker", "Tess Taker the Second", `from ${TAKER.id}`]) {
      expect(text).toContain(theirs);
    }
    expect(await isSuppressedNow(TAKER)).toBe(false);
    expect(await isSuppressedNow({ id: ANN.id })).toBe(true);
  });

  test("keeps a later owner of the handle readable if their id is known", async () => {
    await world.run(forget, ANN.id, "--yes");
    await shown();
    await world.append(STREAMS.outreach, messaged("a6", TAKER, "Hi Tess Taker"));
    expect(await shown()).toContain("Hi Tess Taker");
    expect(await isSuppressedNow(TAKER)).toBe(false);
    // This event has a handle alone, which may still be the forgotten person's. The log cannot tell, so the event is
    // erased.
    await world.append(STREAMS.outreach, [imported("ann_builds", "Ann Bell")]);
    expect(await shown()).not.toContain("Ann Bell");
  });
});

/** True if a run would treat the recipient as suppressed. */
async function isSuppressedNow(who: Recipient): Promise<boolean> {
  await using projector = await startProjector(world.store, { erase: createEraseHandler(world.store.keyring) });
  const hashes = createSuppressionHashes(await world.store.vault.stableKey("suppression"));
  const rules = { ...RULES, hashes, isForgotten: world.store.keyring.isForgotten };
  const state = {
    run: projector.state("run"),
    quota: projector.state("quota"),
    contacts: projector.state("contacts"),
    account: projector.state("account"),
    links: projector.state("links"),
    campaigns: projector.state("campaigns"),
    ms: 0,
  };
  return isSuppressed(state, rules, who);
}

/**
 * Maximum number of encryptions. On any machine they take longer than it takes until a process stops using deleted
 * keys.
 */
const ASKED_MAX = 5_000_000;

test("a process that only writes soon stops using deleted keys", async () => {
  const { keyring } = world.store;
  const key = async (): Promise<string> =>
    keyring.refOf(await encrypted(keyring, { kind: "click", ip: "203.0.113.7" }, "x"));
  const before = await key();
  await world.run(forgetClicks, "203.0.113.7", "--yes");
  for (let asked = 0; (await key()) === before && asked < ASKED_MAX; asked++);
  expect(await key()).not.toBe(before);
});

describe("clicks forget IP", () => {
  test("erases the clicks of that address only", async () => {
    expect(await world.run(forgetClicks, "::ffff:203.0.113.7", "--yes")).toMatchObject({
      code: 0,
      out: expect.stringContaining("1 event can"),
    });
    const text = await shown();
    expect(text).not.toMatch(/203\.0\.113\.7|ann\/1/);
    expect(text).toContain("203.0.113.8");
    expect(text).toContain("https://shop.example/tea?for=bea/1");
    expect(text).toContain('"original_url":"https://shop.example/tea"');
    expect(await world.run(forgetClicks, "203.0.113.7", "--yes").catch(String)).toContain("No readable event has");
  });

  test("can be repeated after new clicks of the address", async () => {
    await world.run(forgetClicks, "203.0.113.7", "--yes");
    await shown();
    await world.append(STREAMS.link("go.example", "x"), [clicked("203.0.113.7", "ann/2")]);
    expect(await shown()).toContain("ann/2");
    expect(await world.run(forgetClicks, "203.0.113.7", "--yes")).toMatchObject({ code: 0 });
    expect(await shown()).not.toContain("ann/2");
  });
});

test.each([
  ["203.0.113.9", "203.0.113.9"],
  ["2001:db8:0:1::5", "2001:db8:0:1::/64"],
])("clicks forget %s erases the wrong tokens recorded for %s", async (subject, address) => {
  const [since, until] = ["2025-11-20T10:00:00.000Z", "2025-11-20T10:00:01.000Z"];
  const data = { address, addresses: 1, failed: 3, turned_away: 0, since, until };
  await world.append(STREAMS.access, [{ type: "AuthenticationsFailed", data }]);
  expect(await shown()).toContain(address);
  expect(await world.run(forgetClicks, subject, "--yes")).toMatchObject({
    code: 0,
    out: expect.stringContaining("1 event can"),
  });
  expect(await shown()).not.toContain(address);
  expect(await shown()).toContain("203.0.113.7");
});

test("forget RECIPIENT erases stored responses about the recipient, and not those of other days", async () => {
  const answered = (username: string): NewEvent => {
    const body = JSON.stringify({ would_send: [{ username, text: `Hi ${username}` }] });
    return { type: "RequestAnswered", data: { digest: "d", status: 200, headers: {}, body } };
  };
  await world.append(STREAMS.answer("1"), [answered("Ann_Builds")]);
  world.later(86_400_000);
  await world.append(STREAMS.answer("2"), [answered("bea_codes")]);
  await world.run(forget, "1777000000000001001", "--yes");
  const text = await shown();
  expect(text).not.toMatch(/ann_builds/i);
  expect(text).toContain("Hi bea_codes");
  // The old key of the day is deleted. Later answers of the same day are encrypted with a new key.
  await world.append(STREAMS.answer("3"), [answered("cid_cooks")]);
  expect(await shown()).toContain("Hi cid_cooks");
});

/** Finds the keys of Ann's personal data, as `forget` does. */
async function keysOfAnn(): Promise<string[]> {
  await using projector = await startProjector(world.store);
  const contacts = projector.state("contacts");
  const ann = findContact(contacts, ANN);
  const { keys } = await findEncrypted(world.store, {
    positions: ann?.positions ?? [],
    isHeld: (handle) => isHeldBy(contacts, handle, ann),
    signal: new AbortController().signal,
  });
  return [...keys];
}

test("an event about the recipient appended during the erasure does not stay in the states", async () => {
  const eventLog = createEventLog(world.store, () => crypto.randomUUID());
  const erase = createEraseHandler(world.store.keyring);
  await using projector = await startProjector(world.store, {
    erase(event) {
      // The event is appended just before the erasure deletes the keys, so it is encrypted with these keys. The
      // projector reads the event only after the keys are gone.
      meanwhile = eventLog.append(STREAMS.outreach, [imported("ann_builds", "Ann Bell")], {});
      return erase(event);
    },
  });
  let meanwhile: Promise<unknown> | undefined;
  const keys = await keysOfAnn();
  await world.append(STREAMS.outreach, [{ type: "PersonForgotten", data: { hashes: [], keys } }]);
  await projector.until((await world.store.head()).position);
  await meanwhile;
  await projector.until((await world.store.head()).position);
  expect(projector.position).toBe(11);
  expect([...projector.state("contacts").people.values()].map(({ username }) => username)).toEqual(["bea_codes"]);
});

test.each(["contacts", "results", undefined])(
  "a recipient forgotten during a start is not in its states (after it loaded %s)",
  async (loaded) => {
    const { store } = world;
    // Makes a projector save snapshots while the recipient is still known.
    if (loaded !== undefined) await (await startProjector(store))[Symbol.asyncDispose]();
    const data = { hashes: [], keys: await keysOfAnn() };
    const tell = (): Promise<void> => world.append(STREAMS.outreach, [{ type: "PersonForgotten", data }]);
    if (loaded === undefined) await tell();
    const load = async (name: string): Promise<Snapshot | undefined> => {
      const snapshot = await store.snapshots.load(name);
      if (name === loaded) await tell();
      return snapshot;
    };
    const starting = { ...store, snapshots: { ...store.snapshots, load } };
    await using projector = await startProjector(starting, { erase: createEraseHandler(store.keyring) });
    expect(Bun.inspect(projector.state("contacts"), { depth: 9 })).not.toMatch(/ann_builds|1777000000000001001/);
    expect(projector.state("results").sent.has(ANN.id)).toBe(false);
    expect(projector.state("contacts").people.size).toBe(1);
  },
);
