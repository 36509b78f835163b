import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { unwrap } from "../../src/vault/data-key.ts";
import { makeKeyFile } from "../../src/vault/key-file.ts";
import { deriveKey } from "../../src/vault/key.ts";
import { keepStableKeys, stableKey, readStableKey } from "../../src/vault/stable-keys.ts";
import { openMasterKey } from "../../src/vault/master-key.ts";
import { rotateKey, type Rotated, type Step } from "../../src/vault/rotation.ts";
import { decryptRow } from "../../src/vault/secret-row.ts";
import { openVault, type Rotation } from "../../src/vault/vault.ts";
import { logFiles, type LogFiles } from "../../src/log/log-files.ts";
import { rewrapKeys } from "../../src/privacy/rewrap.ts";
import { secret } from "../../src/platform/secret.ts";
import { temporaryFolder } from "../harness/temporary.ts";

const FROM = new Uint8Array(32).fill(1);
const TO = new Uint8Array(32).fill(2);
const STEPS: readonly Step[] = ["begun", "rewrapped", "replaced", "ended"];

/** A log's files with a token in the vault, the key in its file or in the environment. */
function openFiles(source: "file" | "environment") {
  const directory = temporaryFolder();
  const files = logFiles(directory.file("reachlog.sqlite"));
  if (source === "file") makeKeyFile(files.key, FROM);
  {
    using vault = openVault(files.vault, FROM);
    keepStableKeys(vault, FROM);
    vault.put("tokens", "first", 0);
    vault.put("tokens", "canary", 1);
  }
  const rotated: Rotated = {
    vaultFile: files.vault,
    keyFile: source === "file" ? files.key : undefined,
    rewrap() {},
  };
  const options = (key?: Uint8Array) => ({
    files,
    keysFile: files.keys,
    rewrap: (rotation: Rotation) => rewrapKeys(files.keys, rotation),
    configured: key === undefined ? undefined : secret(Buffer.from(key).toString("hex")),
  });
  return { files, rotated, options, [Symbol.dispose]: () => directory[Symbol.dispose]() };
}

function tokenWith(files: LogFiles, master: Uint8Array): string | undefined {
  using vault = openVault(files.vault, master);
  return vault.get("tokens")?.value;
}

test("after a rotation the new key opens everything, and the former one nothing", () => {
  using world = openFiles("file");
  rotateKey(world.rotated, { from: FROM, to: TO });
  expect(openMasterKey(world.options())).toEqual(TO);
  using vault = openVault(world.files.vault, TO);
  expect(vault.get("tokens")).toEqual({ version: 2, value: "canary" });
  expect(() => openVault(world.files.vault, FROM)).toThrow("was sealed with");
  expect(statSync(world.files.key).mode & 0o777).toBe(0o600);
});

test("what is sealed after a rotation does not open with the former master key and an old copy of the vault", () => {
  using world = openFiles("file");
  copyFileSync(world.files.vault, `${world.files.vault}.old`);
  rotateKey(world.rotated, { from: FROM, to: TO });
  using copy = new DatabaseSync(`${world.files.vault}.old`);
  using present = new DatabaseSync(world.files.vault);
  const former = unwrap(copy, FROM, "copy");
  const row = present.prepare("SELECT version, sealed FROM secrets WHERE name = 'tokens'").get() as unknown as {
    version: number;
    sealed: Uint8Array;
  };
  const current = unwrap(present, TO, "present");
  expect(decryptRow(current, "tokens", row.version, row.sealed)).toBe("canary");
  expect(decryptRow({ ...former, id: current.id }, "tokens", row.version, row.sealed)).toBeUndefined();
});

test("keyed marks stay the same whatever the master key is, from the first one on", () => {
  using world = openFiles("file");
  const first = deriveKey(FROM, "suppression");
  for (const [from, to] of [
    [FROM, TO],
    [TO, new Uint8Array(32).fill(3)],
  ] as const) {
    rotateKey(world.rotated, { from, to });
    expect(readStableKey(world.files.vault, to, "suppression")).toEqual(first);
  }
});

test("marks that were made before there was a vault stay good after a rotation", () => {
  using directory = temporaryFolder();
  const files = logFiles(directory.file("reachlog.sqlite"));
  makeKeyFile(files.key, FROM);
  const before = readStableKey(files.vault, FROM, "suppression");
  expect(existsSync(files.vault)).toBe(false);
  rotateKey({ vaultFile: files.vault, keyFile: files.key, rewrap() {} }, { from: FROM, to: TO });
  expect(readStableKey(files.vault, TO, "suppression")).toEqual(before);
  using vault = openVault(files.vault, TO);
  expect(stableKey(vault, TO, "credentials")).toEqual(deriveKey(FROM, "credentials"));
});

test("a vault that was open meanwhile goes on while its master key is good, with the new data key", () => {
  using world = openFiles("environment");
  using beside = openVault(world.files.vault, FROM);
  rotateKey(world.rotated, { from: FROM, to: TO });
  expect(beside.get("tokens")?.value).toBe("canary");
  expect(beside.put("tokens", "later", 2)).toBe(true);
  expect(tokenWith(world.files, TO)).toBe("later");
});

test("a vault that was open meanwhile writes nothing that the new key would not open", () => {
  using world = openFiles("file");
  using beside = openVault(world.files.vault, FROM);
  rotateKey(world.rotated, { from: FROM, to: TO });
  expect(() => beside.put("tokens", "too late", 2)).toThrow("was sealed with");
  expect(() => beside.get("tokens")).toThrow("was sealed with");
  expect(tokenWith(world.files, TO)).toBe("canary");
});

describe("killed", () => {
  /** Rotates in a process of its own, which is killed right after the step. */
  async function rotateKilled({ vaultFile, keyFile }: Rotated, killedAfter: Step): Promise<void> {
    const script = `import { rotateKey } from ${JSON.stringify(require.resolve("../../src/vault/rotation.ts"))};
      const [vaultFile, keyFile, killedAfter] = process.argv.slice(1);
      rotateKey({ vaultFile, keyFile: keyFile === "" ? undefined : keyFile, rewrap() {} },
        { from: new Uint8Array(32).fill(1), to: new Uint8Array(32).fill(2) },
        (step) => { if (step === killedAfter) process.kill(process.pid, "SIGKILL"); });`;
    const child = Bun.spawn([process.execPath, "-e", script, vaultFile, keyFile ?? "", killedAfter], {
      stderr: "inherit",
    });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
  }

  test.each(STEPS)(
    "after the step %j: the key in the file opens the vault, and the next start finishes",
    async (step) => {
      using world = openFiles("file");
      await rotateKilled(world.rotated, step);
      const inFile = new Uint8Array(Buffer.from(readFileSync(world.files.key, "utf8").trim(), "hex"));
      expect(inFile).toEqual(step === "begun" || step === "rewrapped" ? FROM : TO);
      expect(tokenWith(world.files, inFile)).toBe("canary");

      expect(openMasterKey(world.options())).toEqual(TO);
      expect(tokenWith(world.files, TO)).toBe("canary");
      expect(readStableKey(world.files.vault, TO, "suppression")).toEqual(deriveKey(FROM, "suppression"));
      expect(() => openVault(world.files.vault, FROM)).toThrow("was sealed with");
      expect(readdirSync(dirname(world.files.key)).sort()).toEqual(["reachlog.key", "reachlog.vault.sqlite"]);
    },
  );

  test.each(["begun", "rewrapped"] as const)(
    "after the step %j, with keys from the environment: both stay good until the new one is given",
    async (step) => {
      using world = openFiles("environment");
      await rotateKilled(world.rotated, step);
      for (const key of [FROM, FROM, TO]) {
        expect(tokenWith(world.files, key)).toBe("canary");
        expect(openMasterKey(world.options(key))).toEqual(TO);
      }
      expect(() => openMasterKey(world.options(FROM))).toThrow("was sealed with");
      expect(tokenWith(world.files, TO)).toBe("canary");
    },
  );
});

test("whatever else is sealed with the master key is told both keys, again until the rotation has ended", () => {
  using world = openFiles("environment");
  const told: string[] = [];
  const rewrap = ({ from, to }: { from: Uint8Array; to: Uint8Array }) => void told.push(`${from[0]} to ${to[0]}`);
  rotateKey({ ...world.rotated, rewrap }, { from: FROM, to: TO });
  rotateKey({ ...world.rotated, rewrap }, { from: FROM, to: TO });
  expect(told).toEqual(["1 to 2", "1 to 2"]);
});

test("a key file that is gone is not made anew beside a vault: it would open nothing", () => {
  using world = openFiles("environment");
  expect(() => openMasterKey(world.options())).toThrow(
    /is gone, and .* was sealed with it: restore it, or set REACHLOG_KEY/,
  );
  expect(existsSync(world.files.key)).toBe(false);
  expect(tokenWith(world.files, FROM)).toBe("canary");
});

test("a wrong key changes no file", () => {
  using world = openFiles("file");
  const contents = () => [world.files.vault, world.files.key].map((file) => readFileSync(file));
  const before = contents();
  expect(() => openMasterKey(world.options(TO))).toThrow("was sealed with");
  expect(() => rotateKey({ ...world.rotated }, { from: TO, to: FROM })).toThrow("was sealed with");
  expect(contents()).toEqual(before);
});
