// On no harness.
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { unwrap } from "../../src/vault/encrypt.ts";
import { deriveKey } from "../../src/vault/derive-keys.ts";
import { makeKeyFile } from "../../src/vault/master-key.ts";
import { readMasterKey, rotateKey, type MasterKeyPlace, type RotationStep } from "../../src/vault/master-key.ts";
import { openSecretStore } from "../../src/vault/encrypted-secrets.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { openVault, type Rotation } from "../../src/vault/vault.ts";
import { logFiles, type LogFiles } from "../../src/log/log-files.ts";
import { secret } from "../../src/platform/secret.ts";
import { temporaryFolder } from "../harness/temporary.ts";

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

test("after a rotation the new key opens everything, and the former one nothing", async () => {
  using world = await openFiles("file");
  await rotate(world.given, { from: FROM, to: TO });
  expect(await readMasterKey(world.place())).toEqual(TO);
  await using vault = await openVault(sqliteSecrets(world.files.vault), TO);
  expect(await vault.get("tokens")).toEqual({ version: 2, value: "canary" });
  expect(openVault(sqliteSecrets(world.files.vault), FROM)).rejects.toThrow("was encrypted with");
  expect(statSync(world.files.key).mode & 0o777).toBe(0o600);
});

test("what is encrypted after a rotation does not open with the former master key and an old copy of the vault", async () => {
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

test("keyed marks stay the same whatever the master key is, from the first one on", async () => {
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

test("marks stay good when the vault is lost before the first rotation", async () => {
  using world = await openFiles("file");
  const before = await stableKey(world.files, FROM);
  rmSync(world.files.vault);
  expect(await stableKey(world.files, FROM)).toEqual(before);
  await rotate(world.given, { from: FROM, to: TO });
  expect(await stableKey(world.files, TO)).toEqual(before);
});

test("a vault that was open meanwhile goes on while its master key is good, with the new data key", async () => {
  using world = await openFiles("environment");
  await using beside = await openVault(sqliteSecrets(world.files.vault), FROM);
  await rotate(world.given, { from: FROM, to: TO });
  expect((await beside.get("tokens"))?.value).toBe("canary");
  expect(await beside.put("tokens", "later", 2)).toBe(true);
  expect(await tokenWith(world.files, TO)).toBe("later");
});

test("a vault that was open meanwhile writes nothing that the new key would not open", async () => {
  using world = await openFiles("file");
  await using beside = await openVault(sqliteSecrets(world.files.vault), FROM);
  await rotate(world.given, { from: FROM, to: TO });
  expect(beside.put("tokens", "too late", 2)).rejects.toThrow("was encrypted with");
  expect(beside.get("tokens")).rejects.toThrow("was encrypted with");
  expect(await tokenWith(world.files, TO)).toBe("canary");
});

describe("killed", () => {
  /** Rotates in a separate process, which is killed right after the step. */
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

  test.each(STEPS)(
    "after the step %j: the key in the file opens the vault, and the next start finishes",
    async (step) => {
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
    },
  );

  test.each(["begun", "rewrapped"] as const)(
    "after the step %j, with keys from the environment: both stay good until the new one is given",
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

test("the keys of personal data open with the new key only from the rotation on, also while the former one is given", async () => {
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

test("no new key file is made beside a vault whose key file is gone: it would open nothing", async () => {
  using world = await openFiles("environment");
  expect(readMasterKey(world.place())).rejects.toThrow(
    /is gone, and .* was encrypted with it: restore it, or set REACHLOG_KEY/,
  );
  expect(existsSync(world.files.key)).toBe(false);
  expect(await tokenWith(world.files, FROM)).toBe("canary");
});

test("a wrong key changes no file", async () => {
  using world = await openFiles("file");
  const contents = () => [world.files.vault, world.files.key].map((file) => readFileSync(file));
  const before = contents();
  expect(readMasterKey(world.place(TO))).rejects.toThrow("was encrypted with");
  expect(rotate(world.given, { from: TO, to: FROM })).rejects.toThrow("was encrypted with");
  expect(contents()).toEqual(before);
});
