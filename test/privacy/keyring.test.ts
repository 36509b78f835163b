// On the memory harness.
import { expect, spyOn, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Owner } from "../../events/encryption.ts";
import { KeyMismatch } from "../../src/vault/error.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { removeDays } from "../../src/privacy/day-keys.ts";
import { createPersonKeys } from "../../src/privacy/person-keys.ts";
import type { KeyStore } from "../../src/privacy/key-store.ts";
import { openKeys } from "../harness/memory/keyring.ts";
import { encrypted } from "./encrypted.ts";

const ANN: Owner = { kind: "person", id: "1001", username: "ann" };
const OWNERS: readonly Owner[] = [
  ANN,
  { kind: "person", username: "Bea" },
  { kind: "click", ip: "203.0.113.7" },
  { kind: "click", ip: undefined },
  { kind: "message" },
  { kind: "answer" },
];

function faultOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (fault) {
    return fault;
  }
}

test.each(OWNERS)(
  "what is sealed for %j opens in its own context, also in another process and after a start",
  (owner) => {
    using world = openKeys();
    const keyring = world.open();
    keyring.prepare([owner]);
    const ciphertext = encrypted(keyring, owner, "tea & Größe", "here");
    expect(ciphertext).not.toContain("tea");
    for (const reader of [keyring, world.open()]) {
      expect(reader.open(ciphertext, "here")).toBe("tea & Größe");
      expect(faultOf(() => reader.open(ciphertext, "elsewhere"))).toMatchObject({ kind: "damaged" });
    }
  },
);

test("no two ciphertexts of one text are alike", () => {
  using world = openKeys();
  const keyring = world.open();
  const ciphertexts = Array.from({ length: 3_000 }, () => encrypted(keyring, { kind: "message" }, "tea", "here"));
  expect(new Set(ciphertexts).size).toBe(ciphertexts.length);
});

test("a person's destroyed key opens nothing, and nothing is kept of them any more", () => {
  using world = openKeys();
  const keyring = world.open();
  keyring.prepare([ANN]);
  const ciphertext = encrypted(keyring, ANN, "tea", "here");
  expect(keyring.destroy(keyring.refsOf({ id: "1001", username: "ann" }))).toBe(1);
  keyring.prepare([ANN, { kind: "person", username: "ann" }]);
  const later = encrypted(keyring, ANN, "more tea", "here");
  expect([keyring.open(ciphertext, "here"), keyring.open(later, "here")]).toEqual([undefined, undefined]);
  expect(later).toEndWith(":");
  expect(keyring.markOf(later)).toBe(keyring.markOf(ciphertext));
});

test("the file holds no key or name in the clear, is its owner's alone, and a destroyed key leaves no bytes", () => {
  using world = openKeys();
  const keyring = world.open();
  keyring.prepare([ANN]);
  expect(statSync(world.file).mode & 0o777).toBe(0o600);
  const [ref = ""] = keyring.refsOf({ id: "1001" });
  const key = keyring.keys.get(ref);
  if (key === undefined || key === "gone") throw new Error("the person has no key");
  const before = readFileSync(world.file);
  expect(before.includes(Buffer.from(key))).toBe(false);
  expect(before.includes(Buffer.from(key).toString("base64"))).toBe(false);
  expect(before.includes("1001")).toBe(false);
  // The wrapped key stands behind its ref, and behind the 16 digits that name what wraps it.
  const day = keyring.refOf(encrypted(keyring, { kind: "message" }, "tea", "here"));
  const bytesBehind = (wanted: string): Buffer => {
    const bytes = readFileSync(world.file);
    const at = bytes.indexOf(wanted) + wanted.length + 16;
    return bytes.subarray(at, at + 40);
  };
  const wrapped = [ref, day].map(bytesBehind);
  keyring.destroy([ref]);
  keyring.keys.remove(day);
  const after = readFileSync(world.file);
  expect(wrapped.map((bytes) => after.includes(bytes))).toEqual([false, false]);
});

test("a day's key is another one when the day comes again, and what was encrypted with the old one is gone for good", () => {
  using world = openKeys();
  const keyring = world.open();
  const clicked: Owner = { kind: "click", ip: "203.0.113.7" };
  const ciphertext = encrypted(keyring, clicked, "tea", "here");
  removeDays(keyring.keys, ["click"], "2026-11-21");
  keyring.refresh();
  const again = encrypted(keyring, clicked, "more tea", "here");
  expect([keyring.open(ciphertext, "here"), keyring.open(again, "here")]).toEqual([undefined, "more tea"]);
});

test("each day has keys of its own", () => {
  using world = openKeys();
  const keyring = world.open();
  const first = encrypted(keyring, { kind: "message" }, "one", "here");
  world.now += 86_400_000;
  const second = encrypted(keyring, { kind: "message" }, "two", "here");
  expect(removeDays(keyring.keys, ["click", "message"], "2026-11-21")).toBe(1);
  keyring.refresh();
  expect([keyring.open(first, "here"), keyring.open(second, "here")]).toEqual([undefined, "two"]);
});

/** As another process does that exchanges the master key. */
function rewrap(file: string, { from, to }: { from: Uint8Array; to: Uint8Array }): void {
  using store = openSecretStore({ file, master: from });
  store.rewrap([to]);
}

test("another master key opens nothing and changes nothing; exchanged, only the new one does, also beside a reader", () => {
  using world = openKeys();
  const keyring = world.open();
  keyring.prepare([ANN]);
  const ciphertext = encrypted(keyring, ANN, "tea", "here");
  const bytes = readFileSync(world.file);
  const [from, to] = [world.master, new Uint8Array(32).fill(4)];
  world.master = to;
  expect(faultOf(() => world.open())).toBeInstanceOf(KeyMismatch);
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
  rewrap(world.file, { from, to });
  keyring.refresh();
  expect([keyring.open(ciphertext, "here"), world.open().open(ciphertext, "here")]).toEqual(["tea", "tea"]);
  world.master = from;
  expect(faultOf(() => world.open())).toBeInstanceOf(KeyMismatch);
});

test("a key that is made while the master key was exchanged elsewhere is wrapped with the one in force", () => {
  using world = openKeys();
  const command = world.open();
  const [from, to] = [world.master, new Uint8Array(32).fill(4)];
  rewrap(world.file, { from, to });
  const bytes = readFileSync(world.file);
  // It knows the former one only: what it would write, nobody could read.
  expect(faultOf(() => command.prepare([ANN]))).toBeInstanceOf(KeyMismatch);
  expect(faultOf(() => command.replaceStateKey())).toBeInstanceOf(KeyMismatch);
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
  world.master = to;
  command.prepare([ANN]);
  command.replaceStateKey();
  const [ciphertext, state] = [encrypted(command, ANN, "tea", "here"), command.encryptState("contacts", "{}")];
  const reader = world.open();
  expect([reader.open(ciphertext, "here"), reader.openState("contacts", state)]).toEqual(["tea", "{}"]);
});

test("beside a key file of before, who came since reads as erased, and what comes later opens", () => {
  using world = openKeys();
  world.open().prepare([{ kind: "person", username: "Bea" }]);
  const older = readFileSync(world.file);
  const newer = world.open();
  newer.prepare([ANN]);
  const ciphertext = encrypted(newer, ANN, "tea", "here");
  writeFileSync(world.file, older);
  const restored = world.open();
  restored.prepare([ANN]);
  const later = encrypted(restored, ANN, "more tea", "here");
  expect([restored.open(ciphertext, "here"), restored.open(later, "here")]).toEqual([undefined, "more tea"]);
  expect(restored.refOf(later)).toBe(restored.refOf(ciphertext));
});

test("a database of something else is no key file, and stays as it is", () => {
  using world = openKeys();
  mkdirSync(dirname(world.file));
  const other = new DatabaseSync(world.file);
  other.exec("PRAGMA journal_mode=WAL; CREATE TABLE events (position INTEGER); INSERT INTO events VALUES (1)");
  other.close();
  const bytes = readFileSync(world.file);
  expect(String(faultOf(() => world.open()))).toContain("is no key file");
  expect(readFileSync(world.file).equals(bytes)).toBe(true);
});

test("somebody who was erased while only their handle was known does not come back by their id", () => {
  using world = openKeys();
  const keyring = world.open();
  const [byHandle] = keyring.refsOf({ username: "Ann" });
  keyring.prepare([{ kind: "person", username: "ann" }]);
  keyring.destroy(keyring.refsOf({ username: "Ann" }));
  keyring.prepare([ANN]);
  const ciphertext = encrypted(keyring, ANN, "tea", "here");
  expect([ciphertext.endsWith(":"), keyring.refOf(ciphertext)]).toEqual([true, byHandle ?? ""]);
});

const ALONE: Owner = { kind: "person", username: "ann" };

/** Sealed as in an append of its own. */
function appended(keyring: ReturnType<ReturnType<typeof openKeys>["open"]>, owner: Owner, text: string): string {
  keyring.prepare([owner]);
  return encrypted(keyring, owner, text, "here");
}

test("what is told of a handle alone has a key of its own each time, and a destroyed one takes no other with it", () => {
  using world = openKeys();
  const keyring = world.open();
  const [former, taker] = [appended(keyring, ALONE, "tea"), appended(keyring, ALONE, "coffee")];
  keyring.destroy([keyring.refOf(former)]);
  expect([former, taker].map((ciphertext) => keyring.open(ciphertext, "here"))).toEqual([undefined, "coffee"]);
  expect(keyring.markOf(former)).toBe(keyring.markOf(taker));
  expect(keyring.isForgotten({ username: "ann" })).toBe(false);
});

test("a person's id and handle destroyed spare whoever has the handle with another id, and what is told to be theirs", () => {
  using world = openKeys();
  const keyring = world.open();
  const [former, own, meanwhile] = ["before", "hers", "hers too"].map((text) => appended(keyring, ALONE, text));
  keyring.destroy(
    [...keyring.refsOf({ id: "1001", username: "Ann" }), keyring.refOf(own ?? "")],
    [keyring.refOf(former ?? "")],
  );
  const later = appended(keyring, ALONE, "later");
  const taker = appended(keyring, { kind: "person", id: "1002", username: "ann" }, "the taker's");
  const opened = [former, own, meanwhile, later, taker].map((ciphertext) => keyring.open(ciphertext ?? "", "here"));
  expect(opened).toEqual(["before", undefined, undefined, undefined, "the taker's"]);
  const names = [
    { id: "1001" },
    { id: "1001", username: "anew" },
    { username: "ANN" },
    { id: "1002", username: "ann" },
  ];
  expect(names.map(keyring.isForgotten)).toEqual([true, true, true, false]);
});

test("a handle that is destroyed between the two halves of an append keeps nothing of it", () => {
  using world = openKeys();
  const [keyring, command] = [world.open(), world.open()];
  keyring.prepare([ALONE]);
  command.destroy(command.refsOf({ id: "1001", username: "ann" }));
  keyring.refresh();
  expect(encrypted(keyring, ALONE, "tea", "here")).toEndWith(":");
});

test.each([
  ["made", { id: "1001", username: "ann" }],
  ["erased", { id: "1001", username: "ann" }],
  ["erased", { username: "ann" }],
])("a key that another process has %s after it was found missing (%j) is not made a second time", (what, who) => {
  using world = openKeys();
  const [keyring, other] = [world.open(), world.open()];
  const [ref = ""] = keyring.refsOf(who);
  let expected: Uint8Array | "gone" | undefined = "gone";
  let meanwhile: (() => void) | undefined = () => {
    if (what === "erased") return void other.destroy(other.refsOf(who));
    other.prepare([{ kind: "person", ...who }]);
    expected = other.keys.get(ref);
  };
  const between: KeyStore = {
    ...keyring.keys,
    getAll(refs) {
      const found = keyring.keys.getAll(refs);
      meanwhile?.();
      meanwhile = undefined;
      return found;
    },
  };
  const people = createPersonKeys(between, keyring.keys.get("pepper") as Uint8Array);
  people.prepare([who]);
  expect([people.at(people.refOf(who)), keyring.keys.get(ref)]).toEqual([expected, expected]);
});

test("an append that is about no person asks the key file nothing", () => {
  using world = openKeys();
  const keyring = world.open();
  const asked = [spyOn(keyring.keys, "revision"), spyOn(keyring.keys, "getAll"), spyOn(keyring.keys, "change")];
  keyring.prepare(OWNERS.filter(({ kind }) => kind !== "person"));
  for (const question of asked) expect(question).not.toHaveBeenCalled();
  keyring.prepare(OWNERS);
  for (const question of asked) expect(question).toHaveBeenCalled();
});
