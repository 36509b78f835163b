// On the memory harness.
import { expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EventStore, Snapshot } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Owner } from "../../events/encryption.ts";
import { KeyMismatch } from "../../src/vault/derive-keys.ts";
import { openSecretStore } from "../../src/vault/encrypted-secrets.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { removeDays } from "../../src/privacy/day-keys.ts";
import { createPersonKeys } from "../../src/privacy/person-keys.ts";
import type { FoundKey, KeyStore } from "../../src/privacy/key-store.ts";
import type { Keyring } from "../../src/privacy/keyring.ts";
import { encryptSnapshots } from "../../src/privacy/encrypted-log.ts";
import { openKeys } from "../harness/memory/keyring.ts";
import { turnsDuring } from "eventstore-lite/testing/turns";
import { encrypted, openedBy } from "./encrypted.ts";

const ANN: Owner = { kind: "person", id: "1001", username: "ann" };
const OWNERS: readonly Owner[] = [
  ANN,
  { kind: "person", username: "Bea" },
  { kind: "click", ip: "203.0.113.7" },
  { kind: "click", ip: undefined },
  { kind: "message" },
  { kind: "answer" },
];

async function faultOf(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (fault) {
    return fault;
  }
}

test.each(OWNERS)(
  "what is encrypted for %j opens in its own context, also in another process and after a start",
  async (owner) => {
    await using world = openKeys();
    const keyring = await world.open();
    const ciphertext = await encrypted(keyring, owner, "tea & Größe");
    expect(ciphertext).not.toContain("tea");
    for (const reader of [keyring, await world.open()]) {
      expect(await openedBy(reader, [ciphertext])).toEqual(["tea & Größe"]);
      expect(await faultOf(() => openedBy(reader, [ciphertext], "elsewhere"))).toMatchObject({ kind: "damaged" });
    }
  },
);

test("work that has a turn while a key is destroyed is not given it any more once it is gone", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const owners: Owner[] = [{ kind: "answer" }];
  const [before] = await keyring.keysFor(owners);
  let last = keyring.keysFor(owners);
  let isDestroyed = false;
  const ask = (): void => {
    if (isDestroyed) return;
    last = keyring.keysFor(owners);
    setImmediate(ask);
  };
  setImmediate(ask);
  await keyring.destroy([keyring.refOf(before!.prefix)]);
  isDestroyed = true;
  const [after] = await last;
  expect(after!.prefix).not.toBe(before!.prefix);
});

test("others have a turn after keys were made or destroyed, and around the encryption of states", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const owners = Array.from({ length: 64 }, (_, at): Owner => ({ kind: "person", username: `ann_${at}` }));
  expect(await turnsDuring(async () => keyring.keysFor(owners))).toBeGreaterThan(1);
  expect(await turnsDuring(() => keyring.destroy(keyring.refsOf({ username: "ann_1" })))).toBeGreaterThan(0);
  let kept: Snapshot | undefined;
  const snapshots = {
    save: async (_: string, snapshot: Snapshot) => void (kept = snapshot),
    load: async () => kept,
  };
  const store = { snapshots, async *read() {} } as unknown as EventStore<Event>;
  const { save, load } = encryptSnapshots(store, keyring);
  const state = { version: 1, position: 1, state: "packed" };
  expect(await turnsDuring(() => save("contacts", state))).toBeGreaterThan(1);
  expect(await turnsDuring(async () => expect(await load("contacts")).toEqual(state))).toBeGreaterThan(1);
});

test("no two ciphertexts of one text are alike", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const ciphertexts = await Promise.all(
    Array.from({ length: 3_000 }, () => encrypted(keyring, { kind: "message" }, "tea")),
  );
  expect(new Set(ciphertexts).size).toBe(ciphertexts.length);
});

test("a person's destroyed key opens nothing, and nothing is kept of them any more", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  await keyring.keysFor([ANN]);
  const ciphertext = await encrypted(keyring, ANN, "tea");
  expect(await keyring.destroy(keyring.refsOf({ id: "1001", username: "ann" }))).toBe(1);
  await keyring.keysFor([ANN, { kind: "person", username: "ann" }]);
  const later = await encrypted(keyring, ANN, "more tea");
  expect(await openedBy(keyring, [ciphertext, later])).toEqual([undefined, undefined]);
  expect(later).toEndWith(":");
  expect(keyring.markOf(later)).toBe(keyring.markOf(ciphertext));
});

test("the file holds no key or name in the clear, is its owner's alone, and a destroyed key leaves no bytes", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  await keyring.keysFor([ANN]);
  expect(statSync(world.file).mode & 0o777).toBe(0o600);
  const [ref = ""] = keyring.refsOf({ id: "1001" });
  const key = (await keyring.keys.getAll([ref])).get(ref);
  if (key === undefined || key === "gone") throw new Error("the person has no key");
  const before = readFileSync(world.file);
  expect(before.includes(Buffer.from(key))).toBe(false);
  expect(before.includes(Buffer.from(key).toString("base64"))).toBe(false);
  expect(before.includes("1001")).toBe(false);
  // The wrapped key follows its ref and the 16 digits that name the wrapping key.
  const day = keyring.refOf(await encrypted(keyring, { kind: "message" }, "tea"));
  const bytesBehind = (wanted: string): Buffer => {
    const bytes = readFileSync(world.file);
    const at = bytes.indexOf(wanted) + wanted.length + 16;
    return bytes.subarray(at, at + 40);
  };
  const wrapped = [ref, day].map(bytesBehind);
  await keyring.destroy([ref]);
  await keyring.keys.change((keys) => keys.remove(day));
  const after = readFileSync(world.file);
  expect(wrapped.map((bytes) => after.includes(bytes))).toEqual([false, false]);
});

test("a day's key is another one when the day comes again, and what was encrypted with the old one is gone for good", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const clicked: Owner = { kind: "click", ip: "203.0.113.7" };
  const ciphertext = await encrypted(keyring, clicked, "tea");
  await removeDays(keyring.keys, ["click"], "2026-11-21");
  keyring.refresh();
  const again = await encrypted(keyring, clicked, "more tea");
  expect(await openedBy(keyring, [ciphertext, again])).toEqual([undefined, "more tea"]);
});

test("each day has keys of its own", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const first = await encrypted(keyring, { kind: "message" }, "one");
  world.now += 86_400_000;
  const second = await encrypted(keyring, { kind: "message" }, "two");
  expect(await removeDays(keyring.keys, ["click", "message"], "2026-11-21")).toBe(1);
  keyring.refresh();
  expect(await openedBy(keyring, [first, second])).toEqual([undefined, "two"]);
});

/** Exchanges the master key as another process does. */
async function rewrap(file: string, { from, to }: { from: Uint8Array; to: Uint8Array }): Promise<void> {
  await using store = await openSecretStore({ place: sqliteSecrets(file), master: from });
  await store.rewrap([to]);
}

test("another master key opens nothing and changes nothing; exchanged, only the new one does, also beside a reader", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  await keyring.keysFor([ANN]);
  const ciphertext = await encrypted(keyring, ANN, "tea");
  const bytes = readFileSync(world.file);
  const [from, to] = [world.master, new Uint8Array(32).fill(4)];
  world.master = to;
  expect(await faultOf(() => world.open())).toBeInstanceOf(KeyMismatch);
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
  await rewrap(world.file, { from, to });
  keyring.refresh();
  for (const reader of [keyring, await world.open()]) expect(await openedBy(reader, [ciphertext])).toEqual(["tea"]);
  world.master = from;
  expect(await faultOf(() => world.open())).toBeInstanceOf(KeyMismatch);
});

test("a key that is made while the master key was exchanged elsewhere is wrapped with the one in force", async () => {
  await using world = openKeys();
  const command = await world.open();
  const [from, to] = [world.master, new Uint8Array(32).fill(4)];
  await rewrap(world.file, { from, to });
  const bytes = readFileSync(world.file);
  // The process knows only the former master key; if it wrote, the result would be unreadable.
  expect(await faultOf(() => command.keysFor([ANN]))).toBeInstanceOf(KeyMismatch);
  expect(await faultOf(() => command.replaceStateKey())).toBeInstanceOf(KeyMismatch);
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
  world.master = to;
  await command.keysFor([ANN]);
  await command.replaceStateKey();
  const [ciphertext, state] = [await encrypted(command, ANN, "tea"), await command.encryptState("contacts", "{}")];
  const reader = await world.open();
  expect(await openedBy(reader, [ciphertext])).toEqual(["tea"]);
  expect(await reader.openState("contacts", state)).toBe("{}");
});

test("beside a key file of before, who came since reads as erased, and what comes later opens", async () => {
  await using world = openKeys();
  await (await world.open()).keysFor([{ kind: "person", username: "Bea" }]);
  const older = readFileSync(world.file);
  const newer = await world.open();
  await newer.keysFor([ANN]);
  const ciphertext = await encrypted(newer, ANN, "tea");
  writeFileSync(world.file, older);
  const restored = await world.open();
  await restored.keysFor([ANN]);
  const later = await encrypted(restored, ANN, "more tea");
  expect(await openedBy(restored, [ciphertext, later])).toEqual([undefined, "more tea"]);
  expect(restored.refOf(later)).toBe(restored.refOf(ciphertext));
});

test("a database of something else is no key file, and stays as it is", async () => {
  await using world = openKeys();
  mkdirSync(dirname(world.file));
  const other = new DatabaseSync(world.file);
  other.exec("PRAGMA journal_mode=WAL; CREATE TABLE events (position INTEGER); INSERT INTO events VALUES (1)");
  other.close();
  const bytes = readFileSync(world.file);
  expect(String(await faultOf(() => world.open()))).toContain("is no key file");
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
});

test("a person who was erased while only their handle was known does not come back by their id", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const [byHandle] = keyring.refsOf({ username: "Ann" });
  await keyring.keysFor([{ kind: "person", username: "ann" }]);
  await keyring.destroy(keyring.refsOf({ username: "Ann" }));
  await keyring.keysFor([ANN]);
  const ciphertext = await encrypted(keyring, ANN, "tea");
  expect([ciphertext.endsWith(":"), keyring.refOf(ciphertext)]).toEqual([true, byHandle ?? ""]);
});

const ALONE: Owner = { kind: "person", username: "ann" };

test("what is told of a handle alone has a key of its own each time, and a destroyed one takes no other with it", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const [former, taker] = [await encrypted(keyring, ALONE, "tea"), await encrypted(keyring, ALONE, "coffee")];
  await keyring.destroy([keyring.refOf(former)]);
  expect(await openedBy(keyring, [former, taker])).toEqual([undefined, "coffee"]);
  expect(keyring.markOf(former)).toBe(keyring.markOf(taker));
  expect(keyring.isForgotten({ username: "ann" })).toBe(false);
});

test("a person's id and handle destroyed spare the person who has the handle with another id, and what is told to be theirs", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const [former, own, meanwhile] = await Promise.all(
    ["before", "hers", "hers too"].map((text) => encrypted(keyring, ALONE, text)),
  );
  await keyring.destroy(
    [...keyring.refsOf({ id: "1001", username: "Ann" }), keyring.refOf(own ?? "")],
    [keyring.refOf(former ?? "")],
  );
  const later = await encrypted(keyring, ALONE, "later");
  const taker = await encrypted(keyring, { kind: "person", id: "1002", username: "ann" }, "the taker's");
  expect(await openedBy(keyring, [former, own, meanwhile, later, taker])).toEqual([
    "before",
    undefined,
    undefined,
    undefined,
    "the taker's",
  ]);
  const names = [
    { id: "1001" },
    { id: "1001", username: "ann_renamed" },
    { username: "ANN" },
    { id: "1002", username: "ann" },
  ];
  expect(names.map(keyring.isForgotten)).toEqual([true, true, true, false]);
});

test.each([
  ["made", { id: "1001", username: "ann" }],
  ["erased", { id: "1001", username: "ann" }],
  ["erased", { username: "ann" }],
])("a key that another process has %s after it was found missing (%j) is not made a second time", async (what, who) => {
  await using world = openKeys();
  const [keyring, other] = [await world.open(), await world.open()];
  const [ref = ""] = keyring.refsOf(who);
  const keyOf = async ({ keys }: Keyring) => (await keys.getAll([ref])).get(ref);
  let expected: FoundKey | undefined = "gone";
  const meanwhile = async (): Promise<void> => {
    if (what === "erased") return void (await other.destroy(other.refsOf(who)));
    await other.keysFor([{ kind: "person", ...who }]);
    expected = await keyOf(other);
  };
  const between: KeyStore = {
    ...keyring.keys,
    async change(work) {
      await meanwhile();
      return keyring.keys.change(work);
    },
  };
  const [pepper] = (await keyring.keys.getAll(["pepper"])).values();
  const [made] = await createPersonKeys(between, pepper as Uint8Array).keysFor([who]);
  expect([made?.key, await keyOf(keyring)]).toEqual([expected, expected]);
});

test("an append that is about no person asks the key file nothing", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  using _time = spyOn(performance, "now").mockReturnValue(performance.now());
  const nobodys = OWNERS.filter(({ kind }) => kind !== "person");
  await keyring.keysFor(nobodys);
  const asked = [spyOn(keyring.keys, "getAll"), spyOn(keyring.keys, "change")];
  expect(keyring.keysFor(nobodys)).toBeArray();
  for (const question of asked) expect(question).not.toHaveBeenCalled();
  await keyring.keysFor(OWNERS);
  for (const question of asked) expect(question).toHaveBeenCalled();
});
