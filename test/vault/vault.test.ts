// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { deriveKey, keyId, KeyMismatch } from "../../src/vault/derive-keys.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { openVault } from "../../src/vault/vault.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";
import { ENGINES } from "./engines.ts";

const DAMAGED = /does not open with the right key: it was altered/;

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);

describe.each(ENGINES)("a vault in %s", (_engine, openPlace) => {
  test("keeps a secret and its version over a restart", async () => {
    await using world = await openPlace();
    {
      await using vault = await openVault(world.place, KEY);
      expect(await vault.put("tokens", "first", 0)).toBe(true);
      expect(await vault.put("tokens", "second", 1)).toBe(true);
    }
    await using vault = await openVault(world.place, KEY);
    expect(await vault.get("tokens")).toEqual({ version: 2, value: "second" });
    expect(await vault.get("others")).toBeUndefined();
  });

  test("refuses the second of two writes based on the same version", async () => {
    await using world = await openPlace();
    await using one = await openVault(world.place, KEY);
    await using other = await openVault(world.place, KEY);
    expect([await one.put("tokens", "one", 0), await other.put("tokens", "other", 0)]).toEqual([true, false]);
    expect([await other.put("tokens", "other", 1), await one.put("tokens", "one", 1)]).toEqual([true, false]);
    expect([await one.put("tokens", "one", 3), await one.put("absent", "one", 1)]).toEqual([false, false]);
    expect(await one.get("tokens")).toEqual({ version: 2, value: "other" });
  });

  test("deletes a secret only at the expected version", async () => {
    await using world = await openPlace();
    await using vault = await openVault(world.place, KEY);
    await vault.put("tokens", "value", 0);
    expect([await vault.delete("tokens", 2), await vault.delete("tokens", 1)]).toEqual([false, true]);
    expect([await vault.get("tokens"), await vault.delete("tokens", 1)]).toEqual([undefined, false]);
    expect(await vault.put("tokens", "value", 0)).toBe(true);
  });

  test("grants a claim to the first caller only, until the claim expires", async () => {
    await using world = await openPlace();
    await using one = await openVault(world.place, KEY);
    await using other = await openVault(world.place, KEY);
    const claimed = [one, other, one, other].map((vault) => vault.claim("state", 100, 0));
    expect((await Promise.all(claimed)).filter(Boolean)).toHaveLength(1);
    expect(await other.claim("else", 100, 0)).toBe(true);
    expect([await other.claim("state", 199, 99), await other.claim("state", 200, 100)]).toEqual([false, true]);
    expect(await one.claim("state", 300, 199)).toBe(false);
  });

  test("reports whether a name is claimed without claiming it", async () => {
    await using world = await openPlace();
    await using vault = await openVault(world.place, KEY);
    await vault.claim("state", 100, 0);
    expect([
      await vault.isClaimed("state", 99),
      await vault.isClaimed("state", 100),
      await vault.isClaimed("else", 0),
    ]).toEqual([true, false, false]);
    expect(await vault.claim("else", 100, 0)).toBe(true);
  });

  test("exists once it was opened, and gives all openers the same stable key", async () => {
    await using world = await openPlace();
    expect(await world.place.isThere()).toBe(false);
    await using one = await openVault(world.place, KEY);
    await using other = await openVault(world.place, KEY);
    expect(await world.place.isThere()).toBe(true);
    const keys = await Promise.all([one, other].map((vault) => vault.stableKey("suppression")));
    expect(keys).toEqual([deriveKey(KEY, "suppression"), deriveKey(KEY, "suppression")]);
  });

  test("refuses another key and names the ids of both keys", async () => {
    await using world = await openPlace();
    await using vault = await openVault(world.place, KEY);
    await vault.put("tokens", "value", 0);
    for (const _ of [1, 2]) {
      expect(openVault(world.place, OTHER_KEY)).rejects.toThrow(
        new KeyMismatch(world.place.name, keyId(OTHER_KEY), [keyId(KEY)]),
      );
    }
    expect((await vault.get("tokens"))?.value).toBe("value");
  });
});

test("expired claims are deleted from the vault's table", async () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  await using vault = await openVault(sqliteSecrets(file), KEY);
  for (let now = 0; now < 50; now++) await vault.claim(`state-${now}`, now + 10, now);
  using database = new DatabaseSync(file);
  expect(database.prepare("SELECT count(*) AS rows FROM claims").get()).toEqual({ rows: 10 });
});

test("opening the vault with another key leaves the file unchanged", async () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  await (await openVault(sqliteSecrets(file), KEY))[Symbol.asyncDispose]();
  const before = readFileSync(file);
  expect(openVault(sqliteSecrets(file), OTHER_KEY)).rejects.toThrow(KeyMismatch);
  expect(readFileSync(file)).toEqual(before);
});

describe("a tampered row does not open", () => {
  /** Opens a vault with two secrets, one of which was changed once. `raw` changes the table behind the vault's back. */
  async function openTampered() {
    const directory = temporaryFolder();
    const file = directory.file("vault");
    const vault = await openVault(sqliteSecrets(file), KEY);
    const raw = new DatabaseSync(file);
    const rowOf = (name: string) =>
      raw
        .prepare("SELECT version, key, ciphertext FROM secrets JOIN ciphertexts USING (slot) WHERE name = ?")
        .get(name) as Record<string, Uint8Array>;
    await vault.put("tokens", "first", 0);
    const former = rowOf("tokens");
    await vault.put("tokens", "second", 1);
    await vault.put("others", "else", 0);
    await vault.put("others", "more", 1);
    const set = (column: string, value: string | number) =>
      raw.prepare(`UPDATE secrets SET ${column} = ? WHERE name = 'tokens'`).run(value);
    const setCiphertext = (value: Uint8Array) =>
      raw
        .prepare(`UPDATE ciphertexts SET ciphertext = ? WHERE slot = (SELECT slot FROM secrets WHERE name = 'tokens')`)
        .run(value);
    const dispose = async (): Promise<void> => {
      raw.close();
      await vault[Symbol.asyncDispose]();
      directory[Symbol.dispose]();
    };
    return { vault, raw, set, setCiphertext, former, rowOf, [Symbol.asyncDispose]: dispose };
  }

  test("when it has the ciphertext of another row", async () => {
    await using world = await openTampered();
    world.setCiphertext(world.rowOf("others")["ciphertext"]!);
    expect(world.vault.get("tokens")).rejects.toThrow(DAMAGED);
    expect((await world.vault.get("others"))?.value).toBe("more");
  });

  test("when two rows have swapped names", async () => {
    await using world = await openTampered();
    world.raw.exec(`UPDATE secrets SET name = 'x' WHERE name = 'tokens';
      UPDATE secrets SET name = 'tokens' WHERE name = 'others'; UPDATE secrets SET name = 'others' WHERE name = 'x'`);
    for (const name of ["tokens", "others"]) expect(world.vault.get(name)).rejects.toThrow(DAMAGED);
  });

  test("when it has its own older ciphertext", async () => {
    await using world = await openTampered();
    world.setCiphertext(world.former["ciphertext"]!);
    expect(world.vault.get("tokens")).rejects.toThrow(DAMAGED);
  });

  test("when its version is higher or lower than the stored one", async () => {
    await using world = await openTampered();
    for (const version of [1, 3]) {
      world.set("version", version);
      expect(world.vault.get("tokens")).rejects.toThrow(DAMAGED);
    }
    world.set("version", 2);
    expect((await world.vault.get("tokens"))?.value).toBe("second");
  });

  test("when it names another data key", async () => {
    await using world = await openTampered();
    world.set("key", "0000000000000000");
    expect(world.vault.get("tokens")).rejects.toThrow(DAMAGED);
  });

  test("when one bit of its ciphertext is flipped", async () => {
    await using world = await openTampered();
    const ciphertext = Uint8Array.from(world.rowOf("tokens")["ciphertext"]!);
    ciphertext[ciphertext.length >> 1]! ^= 1;
    world.setCiphertext(ciphertext);
    expect(world.vault.get("tokens")).rejects.toThrow(DAMAGED);
  });
});

test("a data key relabelled with another id or master key does not open the vault", async () => {
  for (const change of ["id = '0000000000000000'", `master = '${keyId(OTHER_KEY)}'`]) {
    using directory = temporaryFolder();
    const file = directory.file("vault");
    await (await openVault(sqliteSecrets(file), KEY))[Symbol.asyncDispose]();
    using raw = new DatabaseSync(file);
    raw.exec(`UPDATE data_keys SET ${change}`);
    expect(openVault(sqliteSecrets(file), change.startsWith("id") ? KEY : OTHER_KEY)).rejects.toThrow(DAMAGED);
  }
});

test("the file is private to its owner and holds no current or former plaintext secret", async () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    await using vault = await openVault(sqliteSecrets(file), KEY);
    await vault.put("tokens", "canary-of-the-first-pair", 0);
    await vault.put("tokens", "canary-of-the-second-pair", 1);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    // There is no write-ahead log, which would still contain deleted secrets.
    expect(existsSync(`${file}-wal`)).toBe(false);
  }
  // Reads a copy of the file. Reading the database file itself would make SQLite lose its locks on it.
  copyFileSync(file, directory.file("copy"));
  const bytes = readFileSync(directory.file("copy"));
  expect(bytes.includes("tokens")).toBe(true);
  expect(bytes.includes("canary")).toBe(false);
});

test("a vault written by another version of reachlog is refused", async () => {
  using directory = temporaryFolder();
  const file = directory.file("vault");
  {
    using database = new DatabaseSync(file);
    database.exec("PRAGMA user_version = 3");
  }
  expect(openVault(sqliteSecrets(file), KEY)).rejects.toThrow("of another version of reachlog");
});
