// These tests call the code directly.
import { expect, test } from "bun:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase, startPostgres, startProxy } from "eventstore-lite/testing";
import { secret } from "../../src/platform/secret.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { postgresSecrets } from "../../src/vault/postgres-secrets.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { openVault } from "../../src/vault/vault.ts";

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);

function placesIn(url: string) {
  const database = { url: secret(url), shown: "postgres://localhost/test" };
  return {
    vault: postgresSecrets({ ...database, store: "vault" }),
    keys: postgresSecrets({ ...database, store: "keys" }),
  };
}

/** All rows of a table as text. */
async function rowsOf(url: string, table: string): Promise<readonly string[]> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  try {
    const rows = await database.run((sql) => sql.unsafe(`SELECT * FROM reachlog_vault.${table}`));
    return rows.map((row) => JSON.stringify(row));
  } finally {
    await database.close();
  }
}

test("the vault and the key store in one database share no names, claims or revisions", async () => {
  const places = placesIn(await newDatabase());
  await using vault = await openSecretStore({ place: places.vault, master: KEY });
  expect(await places.keys.isThere()).toBe(false);
  await using keys = await openSecretStore({ place: places.keys, master: OTHER_KEY });
  await vault.put("same", "of the vault", 0);
  expect(await keys.get("same")).toBeUndefined();
  const revision = await vault.revision();
  await keys.put("same", "of the keys", 0);
  expect(await keys.claim("same", 10, 0)).toBe(true);
  await keys.rewrap([OTHER_KEY]);
  expect([await vault.get("same"), await vault.names(""), await vault.revision()]).toEqual([
    { version: 1, value: "of the vault" },
    ["same"],
    revision,
  ]);
  expect(await vault.isClaimed("same", 0)).toBe(false);
  await keys.bury("same");
  expect(await vault.get("same")).toEqual({ version: 1, value: "of the vault" });
});

test("the tables hold no plaintext secret and no row of a deleted secret", async () => {
  const url = await newDatabase();
  await using vault = await openVault(placesIn(url).vault, KEY);
  await vault.put("tokens", "canary", 0);
  const before = await rowsOf(url, "secrets");
  expect(before.join()).toContain("tokens");
  expect(before.join()).not.toContain("canary");
  await vault.delete("tokens", 1);
  expect((await rowsOf(url, "secrets")).join()).not.toContain("tokens");
});

test("expired claims are deleted from the table", async () => {
  const url = await newDatabase();
  await using vault = await openVault(placesIn(url).vault, KEY);
  for (let now = 0; now < 50; now++) await vault.claim(`state-${now}`, now + 10, now);
  expect(await rowsOf(url, "claims")).toHaveLength(10);
});

test("reads and writes fail during a server outage and work again after it", async () => {
  await using server = await startPostgres();
  const { vault: place } = placesIn(await server.newDatabase());
  await using vault = await openVault(place, KEY);
  await vault.put("tokens", "first", 0);
  await server.stop("fast");
  const faultOf = (asked: Promise<unknown>) => asked.catch((fault: unknown) => fault);
  const message = "the vault in postgres://localhost/test does not answer";
  for (const ask of [() => vault.get("tokens"), () => vault.put("tokens", "second", 1)]) {
    expect(await faultOf(ask())).toMatchObject({ name: "ServiceError", kind: "full", message });
  }
  expect(await faultOf(openVault(place, KEY))).toMatchObject({
    kind: "unavailable",
    message: expect.stringContaining(`${message}: `),
  });
  await server.start();
  // The vault waits for a while after a refused connection before it asks the server again. So the call is repeated
  // until it succeeds.
  let kept = await faultOf(vault.get("tokens"));
  while (kept instanceof ServiceError) {
    await sleep(10);
    kept = await faultOf(vault.get("tokens"));
  }
  expect(kept).toEqual({ version: 1, value: "first" });
  expect(await vault.put("tokens", "second", 1)).toBe(true);
});

test("a missing database and tables of a newer format are configuration errors", async () => {
  const url = new URL(await newDatabase());
  await using _vault = await openVault(placesIn(url.href).vault, KEY);
  const database = openDatabase({ url: url.href, connections: 1, name: "test" });
  await database.run((sql) => sql`UPDATE reachlog_vault.migrations SET number = 99`);
  await database.close();
  expect(openVault(placesIn(url.href).vault, KEY)).rejects.toThrow(
    "secrets has format 99; this program knows formats up to 1",
  );
  url.pathname = "/no_such_database";
  expect(openVault(placesIn(url.href).vault, KEY)).rejects.toMatchObject({
    kind: "configuration",
    message: expect.stringContaining("the vault in postgres://localhost/test cannot be used: database"),
  });
});

test("a closed vault refuses a read as closed", async () => {
  const vault = await openVault(placesIn(await newDatabase()).vault, KEY);
  await vault[Symbol.asyncDispose]();
  expect(vault.get("tokens")).rejects.toMatchObject({ code: "closed" });
});

/**
 * Number of protocol messages of a change and a claim of secrets on a new connection. The test cuts the connection at
 * each message twice: once before the message passes, and once after.
 */
const MESSAGES = 66;

test("a cut connection never loses a confirmed change or applies a refused one", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  await using store = await openSecretStore({ place: placesIn(proxy.url).keys, master: KEY });
  await using direct = await openSecretStore({ place: placesIn(url).keys, master: KEY });
  const outcomeOf = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => "done",
      (fault: unknown) => (fault as ServiceError).kind,
    );
  const outcomes = new Set<string>();
  for (let round = 0; round < 2 * MESSAGES; round++) {
    let left = round % MESSAGES;
    proxy.decide(() => (left-- === 0 ? (round < MESSAGES ? "cut" : "cut-behind") : "pass"));
    const change = store.change(async (secrets) => {
      for (const name of ["one", "two"]) await secrets.put(`${round}-${name}`, "value", 0);
    });
    const outcome = await outcomeOf(change);
    const claimed = await outcomeOf(store.claim(`${round}`, 10, 0));
    outcomes.add(outcome);
    const isThere = { done: [2], full: [0], in_doubt: [0, 2] }[outcome];
    expect(isThere).toContain((await direct.names(`${round}-`)).length);
    if (claimed === "done") expect(await direct.isClaimed(`${round}`, 0)).toBe(true);
  }
  expect(outcomes).toEqual(new Set(["full", "in_doubt", "done"]));
});

test("a change on a silently lost connection fails, and the next change succeeds", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  await using store = await openSecretStore({ place: placesIn(proxy.url).keys, master: KEY });
  await store.put("before", "value", 0);
  // The proxy loses what the server answers to the first query of the transaction, and everything after that.
  let answers = 0;
  proxy.decide(({ from, type }) => {
    if (from === "server" && type === "Z") answers += 1;
    return answers > 1 ? "lose" : "pass";
  });
  const fault: unknown = await store.put("during", "value", 0).catch((refused: unknown) => refused);
  expect(fault).toMatchObject({ kind: "full" });
  proxy.decide(() => "pass");
  expect(await store.put("after", "value", 0)).toBe(true);
  expect(await store.names("")).toEqual(["after", "before"]);
});

test("a role with rights to the rows only can store secrets but cannot create tables", async () => {
  const url = await newDatabase();
  {
    await using vault = await openVault(placesIn(url).vault, KEY);
    await vault.put("tokens", "canary", 0);
  }
  const asRole = new URL(url);
  asRole.username = `app_${asRole.pathname.slice(1)}`;
  const database = openDatabase({ url, connections: 1, name: "test" });
  await database.run((sql) =>
    sql.unsafe(`CREATE ROLE ${asRole.username} LOGIN; GRANT USAGE ON SCHEMA reachlog_vault TO ${asRole.username};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA reachlog_vault TO ${asRole.username}`),
  );
  const places = placesIn(asRole.href);
  await using vault = await openVault(places.vault, KEY);
  expect(await vault.put("tokens", "another", 1)).toBe(true);
  expect(await vault.claim("state", 10, 0)).toBe(true);
  await using keys = await openSecretStore({ place: places.keys, master: KEY });
  await keys.put("ref", "key", 0);
  await keys.bury("ref");
  await database.run((sql) => sql`DROP SCHEMA reachlog_vault CASCADE`);
  await database.close();
  expect(await openVault(places.vault, KEY).catch((fault: unknown) => fault)).toMatchObject({ kind: "configuration" });
});
