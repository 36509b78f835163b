// These tests run parts of the service inside the test process.
import { expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { EventStore, Snapshot } from "eventstore-lite";
import { countLoopIterations } from "eventstore-lite/testing";
import type { Event } from "../../events/event-types-and-codec.ts";
import type { Owner } from "../../events/declare-personal-members.ts";
import { KeyMismatch } from "../../src/vault/derive-keys.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { removeDays } from "../../src/privacy/daily-encryption-keys.ts";
import { createPersonKeys } from "../../src/privacy/person-keys.ts";
import type { FoundKey, KeyStore } from "../../src/privacy/key-store.ts";
import type { Keyring } from "../../src/privacy/keyring.ts";
import { encryptSnapshots } from "../../src/privacy/encrypted-log.ts";
import { openKeys } from "../harness/in-process/keyring-in-temporary-file.ts";
import { encrypted, openedBy } from "./encrypt-as-the-log-does.ts";

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
  "a ciphertext for %j is decrypted in its own context only, also by another process",
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

test("a request during the destruction of a key does not get that key", async () => {
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

test("creating and destroying keys and encrypting states yield to the event loop", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const owners = Array.from({ length: 64 }, (_, at): Owner => ({ kind: "person", username: `ann_${at}` }));
  expect(await countLoopIterations(async () => keyring.keysFor(owners))).toBeGreaterThan(1);
  expect(await countLoopIterations(() => keyring.destroy(keyring.refsOf({ username: "ann_1" })))).toBeGreaterThan(0);
  let kept: Snapshot | undefined;
  const snapshots = {
    save: async (_: string, snapshot: Snapshot) => void (kept = snapshot),
    load: async () => kept,
  };
  const store = { snapshots, async *read() {} } as unknown as EventStore<Event>;
  const { save, load } = encryptSnapshots(store, keyring);
  const state = { version: 1, position: 1, state: "packed" };
  expect(await countLoopIterations(() => save("contacts", state))).toBeGreaterThan(1);
  expect(await countLoopIterations(async () => expect(await load("contacts")).toEqual(state))).toBeGreaterThan(1);
});

test("ciphertexts of the same text are different", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const ciphertexts = await Promise.all(
    Array.from({ length: 3_000 }, () => encrypted(keyring, { kind: "message" }, "tea")),
  );
  expect(new Set(ciphertexts).size).toBe(ciphertexts.length);
});

test("after a recipient's key is destroyed, earlier and later texts read as erased", async () => {
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

test("the key file is private, contains no plain keys or names, and loses destroyed keys", async () => {
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
  // In the file, the wrapped key comes after its ref and the 16 digits that name the wrapping key.
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

test("a day gets a new key after a deletion, and earlier texts stay erased", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const clicked: Owner = { kind: "click", ip: "203.0.113.7" };
  const ciphertext = await encrypted(keyring, clicked, "tea");
  await removeDays(keyring.keys, ["click"], "2026-11-21");
  keyring.refresh();
  const again = await encrypted(keyring, clicked, "more tea");
  expect(await openedBy(keyring, [ciphertext, again])).toEqual([undefined, "more tea"]);
});

test("each day has its own keys", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const first = await encrypted(keyring, { kind: "message" }, "one");
  world.now += 86_400_000;
  const second = await encrypted(keyring, { kind: "message" }, "two");
  expect(await removeDays(keyring.keys, ["click", "message"], "2026-11-21")).toBe(1);
  keyring.refresh();
  expect(await openedBy(keyring, [first, second])).toEqual([undefined, "two"]);
});

/** Encrypts the key store with another master key, as another process does. */
async function rewrap(file: string, { from, to }: { from: Uint8Array; to: Uint8Array }): Promise<void> {
  await using store = await openSecretStore({ place: sqliteSecrets(file), master: from });
  await store.rewrap([to]);
}

test("another master key is refused, and after a rotation only the new one works", async () => {
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

test("a new key is wrapped with the current master key after a rotation elsewhere", async () => {
  await using world = openKeys();
  const command = await world.open();
  const [from, to] = [world.master, new Uint8Array(32).fill(4)];
  await rewrap(world.file, { from, to });
  const bytes = readFileSync(world.file);
  // This process knows only the former master key. It must not write, because no other process could read the result.
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

test("with an older key file newer texts read as erased, and later ones are readable", async () => {
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

test("another program's database is refused as a key file, and left unchanged", async () => {
  await using world = openKeys();
  mkdirSync(dirname(world.file));
  const other = new DatabaseSync(world.file);
  other.exec("PRAGMA journal_mode=WAL; CREATE TABLE events (position INTEGER); INSERT INTO events VALUES (1)");
  other.close();
  const bytes = readFileSync(world.file);
  expect(String(await faultOf(() => world.open()))).toContain("is not a key file");
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
});

test("a recipient erased by handle stays erased once their id is known", async () => {
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

test("each text about a handle alone has its own key, which is destroyed separately", async () => {
  await using world = openKeys();
  const keyring = await world.open();
  const [former, taker] = [await encrypted(keyring, ALONE, "tea"), await encrypted(keyring, ALONE, "coffee")];
  await keyring.destroy([keyring.refOf(former)]);
  expect(await openedBy(keyring, [former, taker])).toEqual([undefined, "coffee"]);
  expect(keyring.markOf(former)).toBe(keyring.markOf(taker));
  expect(keyring.isForgotten({ username: "ann" })).toBe(false);
});

test("destroying an id and handle keeps the texts of another recipient with that handle", async () => {
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
])("a key that another process has just %s (%j) is not created again", async (what, who) => {
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

test("an append without recipients does not read the key file", async () => {
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
