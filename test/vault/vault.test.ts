// On no harness.
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { keyId } from "../../src/vault/key.ts";
import { KeyMismatch } from "../../src/vault/error.ts";
import { openVault } from "../../src/vault/vault.ts";
import { temporaryFolder } from "../harness/temporary.ts";

const DAMAGED = /does not open with the right key: the file was altered/;

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);

test("a secret is there after a restart, with its version", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    using vault = openVault(file, KEY);
    expect(vault.put("tokens", "first", 0)).toBe(true);
    expect(vault.put("tokens", "second", 1)).toBe(true);
  }
  using vault = openVault(file, KEY);
  expect(vault.get("tokens")).toEqual({ version: 2, value: "second" });
  expect(vault.get("others")).toBeUndefined();
});

test("of two writers who saw the same version the second is told, and changes nothing", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  using one = openVault(file, KEY);
  using other = openVault(file, KEY);
  expect([one.put("tokens", "one", 0), other.put("tokens", "other", 0)]).toEqual([true, false]);
  expect([other.put("tokens", "other", 1), one.put("tokens", "one", 1)]).toEqual([true, false]);
  expect([one.put("tokens", "one", 3), one.put("absent", "one", 1)]).toEqual([false, false]);
  expect(one.get("tokens")).toEqual({ version: 2, value: "other" });
});

test("a deleted secret is gone", () => {
  using directory = temporaryFolder();
  using vault = openVault(directory.file("vault"), KEY);
  vault.put("tokens", "value", 0);
  vault.delete("tokens");
  expect(vault.get("tokens")).toBeUndefined();
  expect(vault.put("tokens", "value", 0)).toBe(true);
});

test("what may be used once is claimed once, by whoever is first, until it is forgotten", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  using one = openVault(file, KEY);
  using other = openVault(file, KEY);
  expect([one.claim("state", 100, 0), other.claim("state", 100, 0), other.claim("else", 100, 0)]).toEqual([
    true,
    false,
    true,
  ]);
  expect([other.claim("state", 199, 99), other.claim("state", 200, 100)]).toEqual([false, true]);
});

test("whether something was claimed can be asked without claiming it", () => {
  using directory = temporaryFolder();
  using vault = openVault(directory.file("vault"), KEY);
  vault.claim("state", 100, 0);
  expect([vault.isClaimed("state", 99), vault.isClaimed("state", 100), vault.isClaimed("else", 0)]).toEqual([
    true,
    false,
    false,
  ]);
  expect(vault.claim("else", 100, 0)).toBe(true);
});

test("claims that are over leave no rows: a flood of them cannot fill the disk", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  using vault = openVault(file, KEY);
  for (let now = 0; now < 50; now++) vault.claim(`state-${now}`, now + 10, now);
  using database = new DatabaseSync(file);
  expect(database.prepare("SELECT count(*) AS rows FROM claims").get()).toEqual({ rows: 10 });
});

test("another key is refused by its id, and what is there stays as it is", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    using vault = openVault(file, KEY);
    vault.put("tokens", "value", 0);
  }
  const before = readFileSync(file);
  for (const _ of [1, 2]) {
    expect(() => openVault(file, OTHER_KEY)).toThrow(new KeyMismatch(file, keyId(OTHER_KEY), [keyId(KEY)]));
  }
  expect(readFileSync(file)).toEqual(before);
  using vault = openVault(file, KEY);
  expect(vault.get("tokens")?.value).toBe("value");
});

describe("a row does not open", () => {
  /** A vault with two secrets of which one was changed once; `raw` writes behind its back. */
  function openTampered() {
    const directory = temporaryFolder();
    const file = directory.file("vault");
    const vault = openVault(file, KEY);
    const raw = new DatabaseSync(file);
    const rowOf = (name: string) =>
      raw.prepare("SELECT version, key, ciphertext FROM secrets WHERE name = ?").get(name) as Record<
        string,
        Uint8Array
      >;
    vault.put("tokens", "first", 0);
    const former = rowOf("tokens");
    vault.put("tokens", "second", 1);
    vault.put("others", "else", 0);
    vault.put("others", "more", 1);
    const set = (column: string, value: string | number | Uint8Array) =>
      raw.prepare(`UPDATE secrets SET ${column} = ? WHERE name = 'tokens'`).run(value);
    const dispose = (): void => {
      raw.close();
      vault[Symbol.dispose]();
      directory[Symbol.dispose]();
    };
    return { vault, raw, set, former, rowOf, [Symbol.dispose]: dispose };
  }

  test("when it is another's", () => {
    using world = openTampered();
    world.set("ciphertext", world.rowOf("others")["ciphertext"]!);
    expect(() => world.vault.get("tokens")).toThrow(DAMAGED);
    expect(world.vault.get("others")?.value).toBe("more");
  });

  test("when two rows changed their names", () => {
    using world = openTampered();
    world.raw.exec(`UPDATE secrets SET name = 'x' WHERE name = 'tokens';
      UPDATE secrets SET name = 'tokens' WHERE name = 'others'; UPDATE secrets SET name = 'others' WHERE name = 'x'`);
    for (const name of ["tokens", "others"]) expect(() => world.vault.get(name)).toThrow(DAMAGED);
  });

  test("when an older one was put in its place", () => {
    using world = openTampered();
    world.set("ciphertext", world.former["ciphertext"]!);
    expect(() => world.vault.get("tokens")).toThrow(DAMAGED);
  });

  test("when its version was changed, so that what is in it would count as newer or older", () => {
    using world = openTampered();
    for (const version of [1, 3]) {
      world.set("version", version);
      expect(() => world.vault.get("tokens")).toThrow(DAMAGED);
    }
    world.set("version", 2);
    expect(world.vault.get("tokens")?.value).toBe("second");
  });

  test("when it names another data key", () => {
    using world = openTampered();
    world.set("key", "0000000000000000");
    expect(() => world.vault.get("tokens")).toThrow(DAMAGED);
  });

  test("when a bit of it was changed", () => {
    using world = openTampered();
    const ciphertext = Uint8Array.from(world.rowOf("tokens")["ciphertext"]!);
    ciphertext[ciphertext.length >> 1]! ^= 1;
    world.set("ciphertext", ciphertext);
    expect(() => world.vault.get("tokens")).toThrow(DAMAGED);
  });
});

test("a data key under the label of another id or of another master key does not open the vault", () => {
  for (const change of ["id = '0000000000000000'", `master = '${keyId(OTHER_KEY)}'`]) {
    using directory = temporaryFolder();
    const file = directory.file("vault");
    openVault(file, KEY)[Symbol.dispose]();
    using raw = new DatabaseSync(file);
    raw.exec(`UPDATE data_keys SET ${change}`);
    expect(() => openVault(file, change.startsWith("id") ? KEY : OTHER_KEY)).toThrow(DAMAGED);
  }
});

test("the file is its owner's alone and holds no secret in the clear, neither a present nor a former one", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    using vault = openVault(file, KEY);
    vault.put("tokens", "canary-of-the-first-pair", 0);
    vault.put("tokens", "canary-of-the-second-pair", 1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // What was deleted would live on in a write-ahead log.
    expect(existsSync(`${file}-wal`)).toBe(false);
  }
  // A copy: reading the database itself would drop SQLite's locks on it.
  copyFileSync(file, directory.file("copy"));
  const bytes = readFileSync(directory.file("copy"));
  expect(bytes.includes("tokens")).toBe(true);
  expect(bytes.includes("canary")).toBe(false);
});

test("a vault that another version of reachlog wrote is left alone", () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    using database = new DatabaseSync(file);
    database.exec("PRAGMA user_version = 3");
  }
  expect(() => openVault(file, KEY)).toThrow("of another version of reachlog");
});
