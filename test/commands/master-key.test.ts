// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join, dirname } from "node:path";
import { StoreOwned } from "eventstore-lite/testing";
import { findContact } from "../../projections/contact-identity.ts";
import { contacts } from "../../projections/contacts.ts";
import { unlock } from "../../src/vault/master-key.ts";
import { key } from "../../src/commands/master-key.ts";
import { loadConfig } from "../../src/config/config.ts";
import { logFiles } from "../../src/log/log-file-paths.ts";
import { locateLog } from "../../src/privacy/locate-log.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { recipients } from "../harness/in-process/operation-commands.ts";

let world: CommandHarness;
beforeEach(async () => {
  world = await openCommands();
});
afterEach(() => world[Symbol.asyncDispose]());

const KEYS = [1, 2, 3].map((fill) => Buffer.alloc(32, fill).toString("hex"));

const config = () => loadConfig(world.env, () => "");
const files = () => logFiles(world.env["DATABASE_URL"]?.slice("sqlite:".length) ?? "");
const place = (name: string) => join(dirname(files().log), name);
const fail = (fault: unknown): { code: number; out: string; err: string } => {
  throw fault;
};

const ADA = {
  type: "RecipientAdded" as const,
  data: {
    recipient: { id: "101", username: "ada" },
    name: "Ada Canary",
    basis: "opt_in" as const,
    fields: {},
    source: "list" as const,
  },
};

/** Reopens the log and returns the recipient's name, which only the right key can decrypt. */
async function nameInLog(): Promise<string | undefined> {
  await using store = await openLog(config());
  const folded = contacts.initial();
  for await (const event of store.read({})) contacts.evolve(folded, event);
  return findContact(folded, { username: "ada" })?.name;
}

const openVault = async () => (await unlock(locateLog(config()).secrets)).vault;

async function keepSecret(): Promise<void> {
  await using vault = await openVault();
  await vault.put("tokens", "canary", 0);
}

async function kept(): Promise<string | undefined> {
  await using vault = await openVault();
  return (await vault.get("tokens"))?.value;
}

async function suppressionKey(): Promise<Uint8Array> {
  await using vault = await openVault();
  return await vault.stableKey("suppression");
}

test("key rotate replaces the key file; everything stays readable, and the log records the rotation", async () => {
  await world.append("outreach", [ADA]);
  await keepSecret();
  const suppression = await suppressionKey();
  const former = readFileSync(files().key, "utf8");
  const before = JSON.parse((await world.run(key, "show", "--json")).out) as { id: string; source: string };
  expect(before.source).toBe(files().key);

  const { code, out } = await world.run(key, "rotate", "--keep", place("former.key"));
  expect([code, readFileSync(place("former.key"), "utf8"), statSync(place("former.key")).mode & 0o777]).toEqual([
    0,
    former,
    0o600,
  ]);
  expect(readFileSync(files().key, "utf8")).not.toBe(former);
  const after = JSON.parse((await world.run(key, "show", "--json")).out) as { id: string };
  expect(out).toBe(`the key is now ${after.id}; it was ${before.id}\n`);
  expect([await kept(), await nameInLog(), await suppressionKey()]).toEqual(["canary", "Ada Canary", suppression]);
  const events = await Array.fromAsync(world.store.read({ types: ["KeyRotated"] }));
  expect(events.map(({ data }) => data)).toEqual([{ from: before.id, to: after.id }]);
});

test("key rotate --json shows both ids and where the former key is kept", async () => {
  await world.append("outreach", [ADA]);
  const { id } = JSON.parse((await world.run(key, "show", "--json")).out) as { id: string };
  const { out } = await world.run(key, "rotate", "--keep", place("former.key"), "--json");
  expect(JSON.parse(out)).toEqual({ from: id, to: expect.stringMatching(/^[0-9a-f]+$/), kept: place("former.key") });
});

test("with the key in the environment both keys work until a start with the new one", async () => {
  Object.assign(world.env, { REACHLOG_KEY: KEYS[0], REACHLOG_KEY_NEXT: KEYS[1] });
  await world[Symbol.asyncDispose]();
  world = await openCommands(undefined, world.env);
  await world.append("outreach", [ADA]);
  await keepSecret();
  const { code, out } = await world.run(key, "rotate");
  expect([code, out]).toEqual([0, expect.stringContaining("put REACHLOG_KEY_NEXT into REACHLOG_KEY")]);
  expect(out).not.toContain(KEYS[1] ?? "");
  const shown: string[] = [];
  for (const given of [KEYS[0], KEYS[1]]) {
    world.env["REACHLOG_KEY"] = given ?? "";
    shown.push((await world.run(key, "show")).out);
    expect([await kept(), await nameInLog()]).toEqual(["canary", "Ada Canary"]);
  }
  expect(shown).toEqual([
    expect.stringContaining("still holds the former one"),
    expect.stringMatching(/REACHLOG_KEY\n$/),
  ]);
  world.env["REACHLOG_KEY"] = KEYS[0] ?? "";
  expect(openVault()).rejects.toThrow("was encrypted with");
});

test("a second rotation is refused until REACHLOG_KEY has the new key, and both keys still work", async () => {
  Object.assign(world.env, { REACHLOG_KEY: KEYS[0], REACHLOG_KEY_NEXT: KEYS[1] });
  await world[Symbol.asyncDispose]();
  world = await openCommands(undefined, world.env);
  await keepSecret();
  await world.run(key, "rotate");
  world.env["REACHLOG_KEY_NEXT"] = KEYS[2] ?? "";
  expect(await world.run(key, "rotate").catch((fault: unknown) => fault)).toMatchObject({ kind: "configuration" });
  for (const given of [KEYS[0], KEYS[1]]) {
    world.env["REACHLOG_KEY"] = given ?? "";
    expect(await kept()).toBe("canary");
  }
});

test("key rotate is refused while a service is running", async () => {
  await keepSecret();
  const before = readFileSync(files().key, "utf8");
  await using _service = await openLog(config(), { owner: "a service" });
  expect(await world.run(key, "rotate").catch((fault: unknown) => fault)).toBeInstanceOf(StoreOwned);
  expect([readFileSync(files().key, "utf8"), await kept()]).toEqual([before, "canary"]);
});

test("key rotate --keep refuses an existing file, and rotates nothing", async () => {
  await keepSecret();
  const before = readFileSync(files().key, "utf8");
  copyFileSync(files().key, place("there.key"));
  expect(await world.run(key, "rotate", "--keep", place("there.key")).catch((fault: unknown) => fault)).toMatchObject({
    code: "EEXIST",
  });
  expect([readFileSync(files().key, "utf8"), await kept()]).toEqual([before, "canary"]);
});

test.each([
  [["rotate", "now"], {}, "Expected 0 arguments but got 1: now."],
  [["rotate"], { REACHLOG_KEY_NEXT: KEYS[1] }, "has no effect"],
])("key %j with %j is refused", async (args, more, problem) => {
  Object.assign(world.env, more);
  expect(String(await world.run(key, ...args).catch((fault: unknown) => fault))).toContain(problem);
});

test("a rotation does not change the suppression hashes of a recipient", async () => {
  await world.append("outreach", [ADA]);
  const hashesOf = async (): Promise<unknown> => {
    await world.run(recipients, "suppress", "ada").catch(fail);
    for await (const { data } of world.store.read({ types: ["RecipientSuppressed"], backwards: true, limit: 1 }))
      return data;
    return undefined;
  };
  const before = await hashesOf();
  expect(before).toMatchObject({ hashes: [expect.any(String), expect.any(String)] });
  await world.run(key, "rotate");
  expect(await hashesOf()).toEqual(before as never);
  expect(existsSync(files().vault)).toBe(true);
});

test("key rotate --end is refused for a log in a file", async () => {
  expect(await world.run(key, "rotate", "--end").catch((fault: unknown) => fault)).toMatchObject({
    message: expect.stringContaining("--end is only for a log on PostgreSQL"),
  });
});
