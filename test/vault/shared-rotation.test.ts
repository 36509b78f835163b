// These tests call the code directly.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { secret } from "../../src/platform/secret.ts";
import {
  endRotation,
  readMasterKey,
  rotateKey,
  unlock,
  type MasterKeyPlace,
  type RotationStep,
} from "../../src/vault/master-key.ts";
import { postgresSecrets } from "../../src/vault/postgres-secrets.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";

const FROM = new Uint8Array(32).fill(1);
const TO = new Uint8Array(32).fill(2);
const NEXT = new Uint8Array(32).fill(3);

/** Two databases, as with KEYS_DATABASE_URL, with a token and a person's key. */
async function openDatabases() {
  const [vault, keys] = [await newDatabase(), await newDatabase()];
  const place = (key: Uint8Array): MasterKeyPlace => ({
    vault: postgresSecrets({ url: secret(vault), shown: "postgres://localhost/log", store: "vault" }),
    keys: postgresSecrets({ url: secret(keys), shown: "postgres://localhost/keys", store: "keys" }),
    key: secret(Buffer.from(key).toString("hex")),
    isShared: true,
  });
  const instance = await start(place(FROM));
  await instance.vault.put("tokens", "canary", 0);
  await instance.keys.put("person", "canary", 0);
  await instance[Symbol.asyncDispose]();
  return { urls: { vault, keys }, place };
}

/** Unlocks the stores as an instance does that starts with this key. */
async function start(place: MasterKeyPlace) {
  const { master, vault, isFormerGiven } = await unlock(place);
  const keys = await openSecretStore({ place: place.keys, master, renew: () => readMasterKey(place) });
  return {
    vault,
    keys,
    isFormerGiven,
    async read() {
      const [token, person] = [await vault.get("tokens"), await keys.get("person")];
      return [token?.value, typeof person === "object" && person.value];
    },
    async [Symbol.asyncDispose]() {
      await keys[Symbol.asyncDispose]();
      await vault[Symbol.asyncDispose]();
    },
  };
}

async function rotate(place: MasterKeyPlace, rotation: { from: Uint8Array; to: Uint8Array }): Promise<void> {
  await using vault = (await unlock(place)).vault;
  await rotateKey(place, vault, rotation);
}

const CANARIES = ["canary", "canary"];

test("instances continue during a rotation and start with either key until it ends", async () => {
  const world = await openDatabases();
  await using running = await start(world.place(FROM));
  await rotate(world.place(FROM), { from: FROM, to: TO });
  expect(await running.read()).toEqual(CANARIES);
  for (const key of [TO, FROM, TO, FROM]) {
    await using started = await start(world.place(key));
    expect([await started.read(), started.isFormerGiven]).toEqual([CANARIES, key === FROM]);
  }
  await using renewed = await start(world.place(TO));
  expect([await running.vault.put("tokens", "later", 1), await running.keys.put("other", "later", 0)]).toEqual([
    true,
    true,
  ]);
  expect([await renewed.vault.get("tokens"), await renewed.keys.get("other")]).toEqual([
    { version: 2, value: "later" },
    { version: 1, value: "later" },
  ]);
});

test("only the new key can end a rotation, and then the former key is refused", async () => {
  const world = await openDatabases();
  expect(await endRotation(world.place(FROM))).toBe(false);
  await rotate(world.place(FROM), { from: FROM, to: TO });
  expect(endRotation(world.place(FROM))).rejects.toMatchObject({ kind: "configuration" });
  expect(await readMasterKey(world.place(FROM))).toEqual(TO);
  expect([await endRotation(world.place(TO)), await endRotation(world.place(TO))]).toEqual([true, false]);
  expect(readMasterKey(world.place(FROM))).rejects.toThrow("was encrypted with");
  await using started = await start(world.place(TO));
  expect(await started.read()).toEqual(CANARIES);
});

test("a second rotation is refused until the first has ended", async () => {
  const world = await openDatabases();
  await rotate(world.place(FROM), { from: FROM, to: TO });
  expect(rotate(world.place(TO), { from: TO, to: NEXT })).rejects.toThrow("has not ended");
  expect([await readMasterKey(world.place(FROM)), await readMasterKey(world.place(TO))]).toEqual([TO, TO]);
  await endRotation(world.place(TO));
  await rotate(world.place(TO), { from: TO, to: NEXT });
  for (const key of [TO, NEXT]) {
    await using started = await start(world.place(key));
    expect(await started.read()).toEqual(CANARIES);
  }
});

test.each<RotationStep>(["begun", "rewrapped"])(
  "both keys open both stores after a rotation was killed after the step %j",
  async (killedAfter) => {
    const world = await openDatabases();
    await rotateKilled(world.urls, killedAfter);
    for (const key of [FROM, TO]) {
      await using started = await start(world.place(key));
      expect(await started.read()).toEqual(CANARIES);
    }
    expect(openSecretStore({ place: world.place(FROM).keys, master: FROM })).rejects.toThrow("was encrypted with");
    expect(await endRotation(world.place(TO))).toBe(true);
  },
);

/** Rotates the master key in a separate process, which is killed right after the step `killedAfter`. */
async function rotateKilled(
  { vault, keys }: { vault: string; keys: string },
  killedAfter: RotationStep,
): Promise<void> {
  const from = (name: string) => JSON.stringify(require.resolve(`../../src/${name}`));
  const script = `import { rotateKey, unlock } from ${from("vault/master-key.ts")};
    import { postgresSecrets } from ${from("vault/postgres-secrets.ts")};
    import { secret } from ${from("platform/secret.ts")};
    const [vault, keys, killedAfter] = process.argv.slice(1);
    const place = {
      vault: postgresSecrets({ url: secret(vault), shown: "", store: "vault" }),
      keys: postgresSecrets({ url: secret(keys), shown: "", store: "keys" }),
      key: secret("01".repeat(32)),
      isShared: true,
    };
    const rotation = { from: new Uint8Array(32).fill(1), to: new Uint8Array(32).fill(2) };
    await rotateKey(place, (await unlock(place)).vault, rotation,
      (step) => { if (step === killedAfter) process.kill(process.pid, "SIGKILL"); });`;
  const child = Bun.spawn([process.execPath, "-e", script, vault, keys, killedAfter], { stderr: "inherit" });
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
}
