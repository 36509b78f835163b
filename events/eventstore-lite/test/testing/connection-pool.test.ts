import { expect, test } from "bun:test";
import postgres from "postgres";
import { refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";

type Client = postgres.Sql | postgres.TransactionSql;

const connect = (url: string, name = "client"): postgres.Sql =>
  postgres(url, { max: 1, fetch_types: false, onnotice: () => {}, connection: { application_name: name } });

async function pidOf(client: Client): Promise<number> {
  return (await client`SELECT pg_backend_pid() AS pid`)[0]!["pid"];
}

/**
 * Returns everything that a client may have left in its session: settings, statements, channels, locks, tables and the
 * role.
 */
async function traces(client: Client): Promise<Record<string, unknown>> {
  const [row] = await client`SELECT current_setting('search_path') AS path, current_setting('application_name') AS name,
    (SELECT count(*)::int FROM pg_prepared_statements WHERE name = 'left') AS prepared,
    (SELECT count(*)::int FROM pg_listening_channels()) AS channels,
    (SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
    to_regclass('pg_temp.left') IS NOT NULL AS tables, current_user AS role`;
  return { ...row };
}

test("the next client gets the connection that a client has left, without any trace of it", async () => {
  const url = await newDatabase();
  const first = connect(url);
  const asNew = await traces(first);
  const pid = await pidOf(first);
  await first.unsafe(`PREPARE "left" AS SELECT 1; LISTEN news; SELECT pg_advisory_lock(1); CREATE TEMP TABLE "left" ();
    SET search_path = nowhere; SET application_name = other; SET ROLE pg_monitor`);
  expect(await traces(first)).not.toEqual(asNew);
  await first.end();
  const next = connect(url);
  expect(await pidOf(next)).toBe(pid);
  expect(await traces(next)).toEqual(asNew);
  const other = connect(url, "another name");
  expect(await pidOf(other)).not.toBe(pid);
  await Promise.all([next.end(), other.end()]);
});

test("a transaction that a client has left is rolled back, and its connection closed", async () => {
  const url = await newDatabase();
  const first = connect(url);
  await first.unsafe("CREATE TABLE rows (value integer)");
  const pid = Promise.withResolvers<number>();
  const left = first.begin(async (transaction) => {
    await transaction`INSERT INTO rows VALUES (1)`;
    pid.resolve(await pidOf(transaction));
    await new Promise(() => {});
  });
  void refusalOf(left);
  const of = await pid.promise;
  await first.end({ timeout: 0 });
  const next = connect(url);
  expect(await pidOf(next)).not.toBe(of);
  expect(await next`SELECT FROM rows`).toHaveLength(0);
  await next.end();
});

test("a request that a client does not wait for is executed, and its connection then serves the next client", async () => {
  const url = await newDatabase();
  const keeper = connect(url, "keeper");
  const first = connect(url);
  await first.unsafe("CREATE TABLE rows (value integer)");
  const pid = await pidOf(first);
  await keeper.begin(async (transaction) => {
    await transaction`LOCK TABLE rows`;
    const waiting = first`INSERT INTO rows VALUES (1)`.execute();
    const isWaiting = () => transaction`SELECT FROM pg_locks WHERE NOT granted AND pid = ${pid}`;
    while ((await isWaiting()).length === 0);
    const refused = refusalOf(waiting);
    await first.end({ timeout: 0 });
    expect(await refused).toMatchObject({ code: "CONNECTION_DESTROYED" });
    const busy = connect(url);
    expect(await pidOf(busy)).not.toBe(pid);
    await busy.end();
  });
  while ((await keeper`SELECT FROM rows`).length === 0);
  const isLeft = () => keeper`SELECT FROM pg_stat_activity WHERE pid = ${pid} AND query LIKE 'CLOSE ALL%'`;
  while ((await isLeft()).length === 0);
  const next = [connect(url), connect(url)];
  expect(await Promise.all(next.map(pidOf))).toContain(pid);
  await Promise.all([keeper, ...next].map((client) => client.end()));
});
