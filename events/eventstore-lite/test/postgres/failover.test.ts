import { expect, test } from "bun:test";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { openPostgresStore, openDatabase, type Database } from "eventstore-lite/postgres";
import { StoreUnavailable, StoreUnusable } from "eventstore-lite/testing";
import { newEvent, refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { watchHead } from "../../src/postgres/watch-head.ts";
import { newDatabase, type PostgresServer, startPostgres } from "../../src/testing/postgres-server.ts";

/** Returns the URL of one database that names several servers, each with its port. */
function urlOf(ports: readonly number[], database = "postgres"): string {
  return `postgres://postgres@${ports.map((port) => `127.0.0.1:${port}`).join()}/${database}`;
}

/** Resolves once a client listens for notifications on the server. */
async function hasListener(server: PostgresServer): Promise<void> {
  while (true) {
    const listeners = await server.ask(
      "SELECT FROM pg_stat_activity WHERE application_name = 'eventstore-lite listener' AND query ILIKE 'LISTEN%'",
    );
    if (listeners.length > 0) return;
  }
}

/** Returns a port of this machine on which no program listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** Starts a standby server, which accepts no writes until it is promoted. */
async function startStandby(): Promise<PostgresServer> {
  const server = await startPostgres({ settings: { wal_level: "replica" } });
  const [setting] = await server.ask("SHOW data_directory");
  await server.stop("fast");
  writeFileSync(join(String(setting?.["data_directory"]), "standby.signal"), "");
  await server.start();
  return server;
}

async function portOf(database: Database): Promise<number> {
  const [row] = await database.run((sql) => sql<{ port: number }[]>`SELECT inet_server_port() AS port`);
  return row!.port;
}

/** Asks the database for its server's port, again and again until a server accepts the connection. */
async function portOnceConnected(database: Database): Promise<number> {
  for (;;) {
    const port = await portOf(database).catch(() => setImmediate());
    if (port !== undefined) return port;
  }
}

test("the answering server is used, in any place of the list", async () => {
  const { port, pathname } = new URL(await newDatabase());
  const closed = await closedPort();
  for (const ports of [
    [closed, Number(port)],
    [Number(port), closed],
  ]) {
    await using store = await openPostgresStore({ url: urlOf(ports, pathname.slice(1)) });
    await store.append("a", [newEvent()]);
  }
  const none = openPostgresStore({ url: urlOf([closed, closed]) });
  expect(await refusalOf(none)).toBeInstanceOf(StoreUnavailable);
});

test("the primary is used, and the standby only after its promotion", async () => {
  await using standby = await startStandby();
  await using primary = await startPostgres();
  const database = openDatabase({ url: urlOf([standby.port, primary.port]), connections: 2, name: "test" });
  expect(await Promise.all([portOf(database), portOf(database)])).toEqual([primary.port, primary.port]);
  await primary.stop("immediate");
  // The first call may fail, because its connection is lost and the database object does not know that yet.
  await portOf(database).catch(() => undefined);
  expect(await refusalOf(portOf(database))).toBeInstanceOf(Error);
  await standby.ask("SELECT pg_promote()");
  expect(await portOnceConnected(database)).toBe(standby.port);
  await database.close();
});

test("the server promoted last is used, and never the former primary", async () => {
  await using promoted = await startStandby();
  await promoted.ask("SELECT pg_promote()");
  await using former = await startPostgres();
  for (const ports of [
    [former.port, promoted.port],
    [promoted.port, former.port],
  ]) {
    const database = openDatabase({ url: urlOf(ports), connections: 1, name: "test" });
    expect(await portOf(database)).toBe(promoted.port);
    await promoted.stop("immediate");
    await portOf(database).catch(() => undefined);
    const refusal = (await refusalOf(portOf(database))) as Error;
    expect(refusal.name).toBe("NotConnected");
    await promoted.start();
    expect(await portOnceConnected(database)).toBe(promoted.port);
    await database.close();
  }
});

test("a follower of a log listens to the promoted server", async () => {
  await using standby = await startStandby();
  await using primary = await startPostgres();
  const url = urlOf([primary.port, standby.port]);
  const database = openDatabase({ url, connections: 1, name: "test" });
  const stop = watchHead(
    url,
    "log",
    () => portOf(database),
    () => {},
  );
  await hasListener(primary);
  await primary.stop("immediate");
  await standby.ask("SELECT pg_promote()");
  await hasListener(standby);
  stop();
  await database.close();
});

test("a silent server is given up and the next one is used", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const { port: answering } = new URL(await newDatabase({ pooled: false }));
  const database = openDatabase({ url: urlOf([port, Number(answering)]), connections: 1, name: "test" });
  const givenUp = database.run((sql) => sql`SELECT 1`, 200);
  expect(await refusalOf(givenUp)).toBeInstanceOf(Error);
  expect(await portOnceConnected(database)).toBe(Number(answering));
  await database.close();
  silent.close();
});

test.each([
  ["one is not verified", "postgres://ann:geheim@localhost,db.example/log", /sslmode=verify-full/],
  ["one is not named", "postgres://ann:geheim@localhost,/log", /cannot be read/],
  ["one has no port", "postgres://ann:geheim@localhost:5432,localhost:no-port/log", /cannot be read/],
])("several servers are refused if %s", async (_, url, reason) => {
  const refusal = (await refusalOf(openPostgresStore({ url }))) as Error;
  expect(refusal).toBeInstanceOf(StoreUnusable);
  expect(refusal.message).toMatch(reason);
  expect(Bun.inspect(refusal)).not.toContain("geheim");
});
