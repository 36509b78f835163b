// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { unwrap } from "../../src/vault/encrypt.ts";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { makeKeyFile } from "../../src/vault/master-key.ts";
import { readMasterKey, rotateKey, type MasterKeyPlace, type RotationStep } from "../../src/vault/master-key.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { openVault, type Rotation } from "../../src/vault/vault.ts";
import { logFiles, type LogFiles } from "../../src/log/log-file-paths.ts";
import { secret } from "../../src/platform/secret.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const FROM = new Uint8Array(32).fill(1);
const TO = new Uint8Array(32).fill(2);
const STEPS: readonly RotationStep[] = ["begun", "rewrapped", "replaced", "ended"];

/** A log's files with a token in the vault; the key is in its file or in the environment. */
async function openFiles(source: "file" | "environment") {
  const directory = temporaryFolder();
  const files = logFiles(directory.file("reachlog.sqlite"));
  if (source === "file") makeKeyFile(files.key, FROM);
  {
    await using vault = await openVault(sqliteSecrets(files.vault), FROM);
    await vault.put("tokens", "first", 0);
    await vault.put("tokens", "canary", 1);
  }
  const place = (key?: Uint8Array): MasterKeyPlace => ({
    vault: sqliteSecrets(files.vault),
    keys: sqliteSecrets(files.keys),
    key: key === undefined ? files.key : secret(Buffer.from(key).toString("hex")),
    isShared: false,
  });
  const given = place(source === "file" ? undefined : FROM);
  return { files, place, given, [Symbol.dispose]: () => directory[Symbol.dispose]() };
}

async function rotate(place: MasterKeyPlace, rotation: Rotation): Promise<void> {
  await using vault = await openVault(place.vault, rotation.from);
  await rotateKey(place, vault, rotation);
}

async function stableKey(files: LogFiles, master: Uint8Array): Promise<Uint8Array> {
  await using vault = await openVault(sqliteSecrets(files.vault), master);
  return await vault.stableKey("suppression");
}

async function tokenWith(files: LogFiles, master: Uint8Array): Promise<string | undefined> {
  await using vault = await openVault(sqliteSecrets(files.vault), master);
  return (await vault.get("tokens"))?.value;
}

test("after a rotation only the new key opens the vault", async () => {
  using world = await openFiles("file");
  await rotate(world.given, { from: FROM, to: TO });
  expect(await readMasterKey(world.place())).toEqual(TO);
  await using vault = await openVault(sqliteSecrets(world.files.vault), TO);
  expect(await vault.get("tokens")).toEqual({ version: 2, value: "canary" });
  expect(openVault(sqliteSecrets(world.files.vault), FROM)).rejects.toThrow("was encrypted with");
  expect(statSync(world.files.key).mode & 0o777).toBe(0o600);
});

test("a rotation re-encrypts all secrets with a new data key, absent from older copies", async () => {
  using world = await openFiles("file");
  copyFileSync(world.files.vault, `${world.files.vault}.old`);
  await rotate(world.given, { from: FROM, to: TO });
  await using copy = await sqliteSecrets(`${world.files.vault}.old`).open();
  await using present = await sqliteSecrets(world.files.vault).open();
  const former = unwrap(await copy.dataKeys(), FROM, "copy");
  const current = unwrap(await present.dataKeys(), TO, "present");
  expect(former.id).not.toBe(current.id);
  expect(former.bytes).not.toEqual(current.bytes);
  const secrets = await present.secrets(await present.names(""));
  expect(new Set(secrets.map(({ key }) => key))).toEqual(new Set([current.id]));
});

test("the stable key for keyed hashes survives each rotation of the master key", async () => {
  using world = await openFiles("file");
  const first = deriveKey(FROM, "suppression");
  for (const [from, to] of [
    [FROM, TO],
    [TO, new Uint8Array(32).fill(3)],
  ] as const) {
    await rotate(world.given, { from, to });
    expect(await stableKey(world.files, to)).toEqual(first);
  }
});

test("the stable key is the same after the vault is lost before the first rotation", async () => {
  using world = await openFiles("file");
  const before = await stableKey(world.files, FROM);
  rmSync(world.files.vault);
  expect(await stableKey(world.files, FROM)).toEqual(before);
  await rotate(world.given, { from: FROM, to: TO });
  expect(await stableKey(world.files, TO)).toEqual(before);
});

test("an open vault adopts the new data key while its master key is still valid", async () => {
  using world = await openFiles("environment");
  await using beside = await openVault(sqliteSecrets(world.files.vault), FROM);
  await rotate(world.given, { from: FROM, to: TO });
  expect((await beside.get("tokens"))?.value).toBe("canary");
  expect(await beside.put("tokens", "later", 2)).toBe(true);
  expect(await tokenWith(world.files, TO)).toBe("later");
});

test("an open vault refuses reads and writes after a rotation made its key invalid", async () => {
  using world = await openFiles("file");
  await using beside = await openVault(sqliteSecrets(world.files.vault), FROM);
  await rotate(world.given, { from: FROM, to: TO });
  expect(beside.put("tokens", "too late", 2)).rejects.toThrow("was encrypted with");
  expect(beside.get("tokens")).rejects.toThrow("was encrypted with");
  expect(await tokenWith(world.files, TO)).toBe("canary");
});

describe("a rotation killed", () => {
  /** Rotates the master key in a separate process, which is killed right after the step `killedAfter`. */
  async function rotateKilled(files: LogFiles, key: string | undefined, killedAfter: RotationStep): Promise<void> {
    const from = (name: string) => JSON.stringify(require.resolve(`../../src/${name}`));
    const script = `import { rotateKey } from ${from("vault/master-key.ts")};
      import { sqliteSecrets } from ${from("vault/sqlite-secrets.ts")};
      import { openVault } from ${from("vault/vault.ts")};
      import { secret } from ${from("platform/secret.ts")};
      const [vault, keys, file, key, killedAfter] = process.argv.slice(1);
      const place = {
        vault: sqliteSecrets(vault), keys: sqliteSecrets(keys), key: key === "" ? file : secret(key), isShared: false,
      };
      const rotation = { from: new Uint8Array(32).fill(1), to: new Uint8Array(32).fill(2) };
      await rotateKey(place, await openVault(place.vault, rotation.from), rotation,
        (step) => { if (step === killedAfter) process.kill(process.pid, "SIGKILL"); });`;
    const args = [files.vault, files.keys, files.key, key ?? "", killedAfter];
    const child = Bun.spawn([process.execPath, "-e", script, ...args], { stderr: "inherit" });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
  }

  test.each(STEPS)("after the step %j is completed by the next start with the key file", async (step) => {
    using world = await openFiles("file");
    await rotateKilled(world.files, undefined, step);
    const inFile = new Uint8Array(Buffer.from(readFileSync(world.files.key, "utf8").trim(), "hex"));
    expect(inFile).toEqual(step === "begun" || step === "rewrapped" ? FROM : TO);
    expect(await tokenWith(world.files, inFile)).toBe("canary");

    expect(await readMasterKey(world.place())).toEqual(TO);
    expect(await tokenWith(world.files, TO)).toBe("canary");
    expect(await stableKey(world.files, TO)).toEqual(deriveKey(FROM, "suppression"));
    expect(openVault(sqliteSecrets(world.files.vault), FROM)).rejects.toThrow("was encrypted with");
    expect(readdirSync(dirname(world.files.key)).sort()).toEqual(["reachlog.key", "reachlog.vault.sqlite"]);
  });

  test.each(["begun", "rewrapped"] as const)(
    "after the step %j accepts both environment keys until a start has the new one",
    async (step) => {
      using world = await openFiles("environment");
      await rotateKilled(world.files, Buffer.from(FROM).toString("hex"), step);
      for (const key of [FROM, FROM, TO]) {
        expect(await tokenWith(world.files, key)).toBe("canary");
        expect(await readMasterKey(world.place(key))).toEqual(TO);
      }
      expect(readMasterKey(world.place(FROM))).rejects.toThrow("was encrypted with");
      expect(await tokenWith(world.files, TO)).toBe("canary");
    },
  );
});

test("only the new key opens the key store after a rotation", async () => {
  using world = await openFiles("environment");
  const openKeys = (master: Uint8Array) => openSecretStore({ place: world.given.keys, master });
  {
    await using keys = await openKeys(FROM);
    await keys.put("person", "canary", 0);
  }
  await rotate(world.given, { from: FROM, to: TO });
  for (const key of [FROM, FROM, TO]) {
    expect(await readMasterKey(world.place(key))).toEqual(TO);
    await using keys = await openKeys(TO);
    expect(await keys.get("person")).toEqual({ version: 1, value: "canary" });
    expect(openKeys(FROM)).rejects.toThrow("was encrypted with");
  }
});

test("a start creates no new key file for an existing vault without one", async () => {
  using world = await openFiles("environment");
  expect(readMasterKey(world.place())).rejects.toThrow(
    /is gone, and .* was encrypted with it: restore it, or set REACHLOG_KEY/,
  );
  expect(existsSync(world.files.key)).toBe(false);
  expect(await tokenWith(world.files, FROM)).toBe("canary");
});

test("a start uses the key that another first start makes at the same time, with the vault", async () => {
  using world = await openFiles("environment");
  const { vault, ...place } = world.place();
  const isThere = (): Promise<boolean> => {
    makeKeyFile(world.files.key, FROM);
    return vault.isThere();
  };
  expect(await readMasterKey({ ...place, vault: { ...vault, isThere } })).toEqual(FROM);
});

test("a wrong key changes neither the vault nor the key file", async () => {
  using world = await openFiles("file");
  const contents = () => [world.files.vault, world.files.key].map((file) => readFileSync(file));
  const before = contents();
  expect(readMasterKey(world.place(TO))).rejects.toThrow("was encrypted with");
  expect(rotate(world.given, { from: TO, to: FROM })).rejects.toThrow("was encrypted with");
  expect(contents()).toEqual(before);
});
