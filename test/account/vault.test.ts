import { expect, test } from "bun:test";
import { copyFileSync, readFileSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { openVault, VaultKeyMismatch } from "../../src/account/vault.ts";
import { temporaryDirectory } from "./directory.ts";

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);

test("a secret is there after a restart, with its version", () => {
  using directory = temporaryDirectory();
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
  using directory = temporaryDirectory();
  const file = directory.file("vault");
  using one = openVault(file, KEY);
  using other = openVault(file, KEY);
  expect([one.put("tokens", "one", 0), other.put("tokens", "other", 0)]).toEqual([true, false]);
  expect([other.put("tokens", "other", 1), one.put("tokens", "one", 1)]).toEqual([true, false]);
  expect([one.put("tokens", "one", 3), one.put("absent", "one", 1)]).toEqual([false, false]);
  expect(one.get("tokens")).toEqual({ version: 2, value: "other" });
});

test("a deleted secret is gone", () => {
  using directory = temporaryDirectory();
  using vault = openVault(directory.file("vault"), KEY);
  vault.put("tokens", "value", 0);
  vault.delete("tokens");
  expect(vault.get("tokens")).toBeUndefined();
  expect(vault.put("tokens", "value", 0)).toBe(true);
});

test("another key is refused, and what is there stays readable with the right one", () => {
  using directory = temporaryDirectory();
  const file = directory.file("vault");
  {
    using vault = openVault(file, KEY);
    vault.put("tokens", "value", 0);
  }
  for (const _ of [1, 2]) expect(() => openVault(file, OTHER_KEY)).toThrow(VaultKeyMismatch);
  using vault = openVault(file, KEY);
  expect(vault.get("tokens")?.value).toBe("value");
});

test("rows that were swapped, or an older one put back, do not open", () => {
  using directory = temporaryDirectory();
  const file = directory.file("vault");
  using vault = openVault(file, KEY);
  vault.put("tokens", "first", 0);
  vault.put("others", "else", 0);
  using database = new DatabaseSync(file);
  const sealedOf = (name: string) => {
    const row = database.prepare("SELECT sealed FROM secrets WHERE name = ?").get(name) as { sealed: Uint8Array };
    return row.sealed;
  };
  const replace = (name: string, sealed: Uint8Array) =>
    database.prepare("UPDATE secrets SET sealed = ? WHERE name = ?").run(sealed, name);
  const [first, others] = [sealedOf("tokens"), sealedOf("others")];
  replace("tokens", others);
  expect(() => vault.get("tokens")).toThrow(VaultKeyMismatch);
  replace("tokens", first);
  vault.put("tokens", "second", 1);
  replace("tokens", first);
  expect(() => vault.get("tokens")).toThrow(VaultKeyMismatch);
});

test("the file is its owner's alone and holds no secret in the clear, neither a present nor a former one", () => {
  using directory = temporaryDirectory();
  const file = directory.file("vault");
  {
    using vault = openVault(file, KEY);
    vault.put("tokens", "canary-of-the-first-pair", 0);
    vault.put("tokens", "canary-of-the-second-pair", 1);
    for (const name of [file, `${file}-wal`, `${file}-shm`]) expect(statSync(name).mode & 0o777).toBe(0o600);
  }
  // A copy: reading the database itself would drop SQLite's locks on it.
  copyFileSync(file, directory.file("copy"));
  const bytes = readFileSync(directory.file("copy"));
  expect(bytes.includes("tokens")).toBe(true);
  expect(bytes.includes("canary")).toBe(false);
});
