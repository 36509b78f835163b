import { expect, test } from "bun:test";
import { findContact } from "../../projections/contact-identity.ts";
import { contacts } from "../../projections/contacts.ts";
import { parseKey } from "../../src/vault/derive-keys.ts";
import { loadKeyFile } from "../../src/vault/master-key.ts";
import { unlock } from "../../src/vault/master-key.ts";
import { openVault } from "../../src/vault/vault.ts";
import { loadConfig } from "../../src/config/config.ts";
import { locateLog } from "../../src/privacy/locate-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { openInstallation, type Installation } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";
import { has } from "./required-tools.ts";

/** System calls that a rotation makes for everything that it writes to the disk. */
const CALLS = "fsync,fdatasync,rename,unlink,link,pwrite64";

const KEYS = [1, 2].map((fill) => Buffer.alloc(32, fill).toString("hex"));

/** Decrypted values, each of which is stored encrypted with the master key. */
interface Readable {
  readonly name: string | undefined;
  readonly token: string | undefined;
  readonly hashes: string;
}

test.skipIf(!has("strace"))("a rotation of the key file killed at any write leaves everything readable", async () => {
  const told = { kills: 0, unreadable: 0, unfinished: 0 };
  await using world = await openInstallation();
  const before = await prepare(world);
  for (let nth = 1; await isKilled(world, nth, {}); nth++) {
    told.kills++;
    if (await isUnfinished(world, {})) told.unfinished++;
    const after = await readable(world, {}).catch(String);
    if (JSON.stringify(after) !== JSON.stringify(before)) told.unreadable++;
  }
  report("in its file", told);
  expect([told.kills > 20, told.unfinished > 0, told.unreadable]).toEqual([true, true, 0]);
});

test.skipIf(!has("strace"))(
  "a rotation of the key in the environment killed at any write leaves everything readable",
  async () => {
    const told = { kills: 0, unreadable: 0, unfinished: 0 };
    const [REACHLOG_KEY = "", REACHLOG_KEY_NEXT = ""] = KEYS;
    for (let nth = 1, isOver = false; !isOver; nth++) {
      await using world = await openInstallation();
      world.env["REACHLOG_KEY"] = REACHLOG_KEY;
      const before = JSON.stringify(await prepare(world));
      isOver = !(await isKilled(world, nth, { REACHLOG_KEY_NEXT }));
      if (isOver) break;
      told.kills++;
      if (await isUnfinished(world, {})) told.unfinished++;
      const withFormer = await readable(world, {}).catch(String);
      const withNew = await readable(world, { REACHLOG_KEY: REACHLOG_KEY_NEXT }).catch((fault: unknown) => fault);
      if (JSON.stringify(withFormer) !== before) told.unreadable++;
      if (!String(withNew).includes("was encrypted with") && JSON.stringify(withNew) !== before) told.unreadable++;
    }
    report("in the environment", told);
    expect([told.kills > 20, told.unfinished > 0, told.unreadable]).toEqual([true, true, 0]);
  },
);

function report(
  where: string,
  { kills, unreadable, unfinished }: { kills: number; unreadable: number; unfinished: number },
): void {
  console.log(
    `kill -9 in a rotation of the key ${where}: ${kills} kills, ${unfinished} half done, unreadable ${unreadable}`,
  );
}

const configOf = (world: Installation, more: Record<string, string>) => loadConfig({ ...world.env, ...more }, () => "");

/** Adds a recipient to the log and a token to the vault, and returns both as they are read. */
async function prepare(world: Installation): Promise<Readable> {
  const file = world.file("people.csv", "username,name,basis\nada,Ada Canary,opt_in\n");
  expect((await world.execute("recipients", "import", file)).code).toBe(0);
  const config = configOf(world, {});
  await using vault = (await unlock(locateLog(config).secrets)).vault;
  await vault.put("tokens", "canary", 0);
  return await readable(world, {});
}

/**
 * Opens the log as the next command would, and returns the decrypted values. Opening it completes an interrupted
 * rotation.
 */
async function readable(world: Installation, more: Record<string, string>): Promise<Readable> {
  const config = configOf(world, more);
  await using store = await openLog(config);
  const folded = contacts.initial();
  for await (const event of store.read({})) contacts.evolve(folded, event);
  const { vault } = store;
  return {
    name: findContact(folded, { username: "ada" })?.name,
    token: (await vault.get("tokens"))?.value,
    hashes: Buffer.from(await vault.stableKey("suppression")).toString("hex"),
  };
}

/** True if the vault contains an unfinished rotation. The vault is opened with the configured key. */
async function isUnfinished(world: Installation, more: Record<string, string>): Promise<boolean> {
  const config = configOf(world, more);
  const { key, vault: place } = locateLog(config).secrets;
  const given = typeof key === "string" ? loadKeyFile(key) : parseKey(key.reveal(), "REACHLOG_KEY");
  await using vault = await openVault(place, given);
  return (await vault.rotation()) !== undefined;
}

/**
 * Rotates the master key by a command that is killed at its `nth` system call; false if the rotation ended before that
 * call.
 */
async function isKilled(world: Installation, nth: number, more: Record<string, string>): Promise<boolean> {
  const injection = [
    "-f",
    "-qq",
    "-o",
    "/dev/null",
    "-e",
    `trace=${CALLS}`,
    "-e",
    `inject=${CALLS}:signal=KILL:when=${nth}`,
  ];
  const child = Bun.spawn(["strace", ...injection, ...onRuntime(["key", "rotate"])], {
    cwd: world.directory,
    env: { ...world.env, ...more },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [told, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (child.signalCode === null && code !== 0 && code !== 137)
    throw new Error(`key rotate ended with ${code}: ${told}`);
  return code !== 0;
}
