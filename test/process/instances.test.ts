// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { openDatabase } from "eventstore-lite/postgres";
import { startPostgres, type PostgresServer } from "eventstore-lite/testing";
import { PROJECTION_NAMES } from "../../projections/all.ts";
import { CLICK } from "../harness/sample-click.ts";
import { startPostgresWithTls } from "../harness/postgres-with-tls.ts";
import {
  authorize,
  ended,
  exported,
  kill,
  openInstallation,
  stop,
  until,
  untilListening,
  type Running,
} from "../harness/process.ts";

const server = startPostgres();
const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };

/** Instances that share a log on a server. */
async function openInstances(count: number, on?: PostgresServer, more: Record<string, string> = {}) {
  const stack = new AsyncDisposableStack();
  const world = stack.use(await openInstallation());
  // Only one channel stays configured: the others accept one message a second, which would make the test slow.
  const others = { CHAT_WEBHOOK_URL: "", TELEGRAM_BOT_TOKEN: "", TELEGRAM_CHAT_ID: "" };
  Object.assign(world.env, KEY, others, more, { DATABASE_URL: await (on ?? (await server)).newDatabase() });
  const services = await Promise.all(Array.from({ length: count }, () => world.serve()));
  return { world, services, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

function click({ post }: Running, key?: string): Promise<Response> {
  return post("/api/tracking/event", CLICK, key === undefined ? {} : { "idempotency-key": key });
}

/** Position up to which an instance has read the log. */
async function positionOf({ get }: Running): Promise<number> {
  const { log } = (await (await get("/api/health")).json()) as { log: { position: number } };
  return log.position;
}

test("instances share one log, dispatch each click once, and a rebuild finds no difference", async () => {
  await using instances = await openInstances(2);
  const { world, services } = instances;
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => click(services[n % 2]!)));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 60 }, () => 202));
  // Waits until both instances know all clicks and none is pending. Each click must then have been dispatched once,
  // whichever instance holds the channel.
  const settled = async () => {
    const [one, two] = await Promise.all(services.map(async ({ get }) => (await get("/api/health")).json()));
    return [one, two] as { log: { position: number }; channels: Record<string, { pending: number }> }[];
  };
  const [one, two] = await until(settled, (both) =>
    both.every(
      ({ log, channels }) =>
        log.position > 60 && log.position === both[0]?.log.position && channels["ads"]?.pending === 0,
    ),
  );
  expect(one?.log.position).toBe(two?.log.position ?? 0);
  expect(world.sandbox.meta.events.total).toBe(60);
  const events = await exported(world);
  expect(events.filter(({ type }) => type === "LinkClicked")).toHaveLength(60);
  expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
  const replayed = await world.command("replay");
  expect([replayed.code, replayed.err]).toEqual([0, ""]);
  const takenOver = ({ log }: Running) => log().split("loaded, without a difference").length - 1;
  for (const service of services) {
    await until(
      async () => takenOver(service),
      (count) => count === PROJECTION_NAMES.length,
    );
  }
  expect((await world.command("audit", "verify")).code).toBe(0);
});

test("a killed instance loses no acknowledged click, and another serves the repeats", async () => {
  await using instances = await openInstances(2);
  const [one, two] = instances.services as [Running, Running];
  const acknowledged = new Set<string>();
  const clickAt = async (service: Running, key: string): Promise<void> => {
    const { id } = (await (await click(service, key)).json()) as { id: string };
    acknowledged.add(id);
  };
  const underWay = Array.from({ length: 40 }, (_, n) => clickAt(one, `k-${n}`).catch(() => {}));
  await Promise.race(underWay);
  await kill(one);
  await Promise.all(underWay);
  // A caller that got no answer repeats its requests at the other instance, with the same keys.
  for (let n = 0; n < 40; n++) await clickAt(two, `k-${n}`);
  const clicks = (await exported(instances.world)).filter(({ type }) => type === "LinkClicked");
  expect(clicks).toHaveLength(40);
  expect(acknowledged.size).toBe(40);
});

test("while PostgreSQL is down instances refuse writes, answer reads, and recover on their own", async () => {
  await using away = await startPostgres();
  await using instances = await openInstances(2, away);
  const { world, services } = instances;
  const [one, two] = services as [Running, Running];
  const before = (await (await click(one)).json()) as { id: string };
  await until(
    () => Promise.all(services.map(positionOf)),
    (positions) => positions.every((position) => position >= 1),
  );
  await away.stop("immediate");
  const refused = await click(two);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  for (const { get } of services) {
    // The instance checks once a second if the log can be reached.
    await until(
      async () => ((await (await get("/readyz")).json()) as { checks: Record<string, boolean> }).checks,
      (checks) => checks["running"] === true && !checks["log_writable"] && !checks["projections_caught_up"],
    );
    expect((await get("/readyz")).status).toBe(503);
    expect((await get("/livez")).status).toBe(200);
    const health = await get("/api/health");
    expect([health.status, await health.json()]).toMatchObject([503, { status: "degraded" }]);
    // A refused append shows at once that the log accepts nothing. The service checks only once a second if the log can
    // be read, so wait for that.
    const stats = await until(
      async () => (await get("/social/stats")).json() as Promise<{ as_of: { stale?: boolean } }>,
      ({ as_of }) => as_of.stale === true,
    );
    expect(stats).toMatchObject({ sent: 0, as_of: { position: expect.any(Number) } });
    expect(await (await get("/social/health")).json()).toMatchObject({ status: "degraded" });
  }
  await away.start();
  for (const { get } of services) {
    await until(
      async () => (await get("/readyz")).status,
      (status) => status === 200,
    );
  }
  const after = (await (await click(two)).json()) as { id: string };
  await until(
    () => Promise.all(services.map(positionOf)),
    ([here = 0, there = 0]) => here === there && here >= 2,
  );
  const clicks = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  expect(clicks.map(({ id }) => id)).toEqual([before.id, after.id]);
  // Waits for the delivery of the second click. During the outage the dispatcher lost its lease, so it must get the
  // lease back, or another instance takes over.
  await until(
    async () => world.sandbox.meta.events.total,
    (total) => total === 2,
  );
  // The test server runs without fsync for speed, and the service warns about it.
  expect(one.log()).toContain("fsync is off there: when its machine fails, what was acknowledged may be lost");
  expect(await Promise.all(services.map(stop))).toEqual([0, 0]);
});

test("one idempotency key at two instances starts one run with the same response", async () => {
  await using instances = await openInstances(2);
  const { world, services } = instances;
  const [one, two] = services as [Running, Running];
  const file = world.file("people.csv", "username,basis\nada_builds,opt_in\n");
  expect((await world.command("recipients", "import", file)).code).toBe(0);
  expect((await authorize(one, world.sandbox)).answer.status).toBe(200);
  // The other instance reads of the authorization in the log. Waits until it has.
  await until(
    async () => ((await (await two.get("/social/health")).json()) as { authorized: boolean }).authorized,
    (authorized) => authorized,
  );
  const headers = { "idempotency-key": "2026-03-01", prefer: "wait=300" };
  const answers = await Promise.all([one, two, one, two].map(({ post }) => post("/social/run", {}, headers)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const bodies = await Promise.all(answers.map((answer) => answer.text()));
  expect(new Set(bodies).size).toBe(1);
  const types = (await exported(world)).map(({ type }) => type);
  expect(types.filter((type) => type === "RunStarted" || type === "DirectMessageAttempted")).toHaveLength(2);
});

test("wrong tokens at two instances count toward one limit", async () => {
  await using instances = await openInstances(2);
  const guess = async ({ post }: Running) =>
    (await post("/api/messaging", { text: "x" }, { authorization: "Bearer not-a-token" })).status;
  const statuses: number[] = [];
  for (let n = 0; n < 12; n++) statuses.push(await guess(instances.services[n % 2]!));
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
});

test("the keys of personal data may be in a separate database", async () => {
  await using instances = await openInstances(1, undefined, {
    KEYS_DATABASE_URL: await (await server).newDatabase(),
  });
  const { world, services } = instances;
  await click(services[0]!);
  const [clicked] = (await exported(world)).filter(({ type }) => type === "LinkClicked");
  expect(clicked?.data["user_agent"]).toBe(CLICK.user_agent);
  expect(await storesIn(world.env["KEYS_DATABASE_URL"] ?? "")).toEqual(["keys"]);
  expect(await storesIn(world.env["DATABASE_URL"] ?? "")).toEqual(["vault"]);
});

/** Returns the names of the stores of secrets in a database, such as `vault`. */
async function storesIn(url: string): Promise<readonly string[]> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  try {
    const rows = await database.run((sql) => sql<{ store: string }[]>`SELECT store FROM reachlog_vault.data_keys`);
    return rows.map(({ store }) => store);
  } finally {
    await database.close();
  }
}

test("a second instance with another daily limit is refused, and both limits are named", async () => {
  await using instances = await openInstances(1);
  const { world, services } = instances;
  const { code, err } = await ended(world.start(["serve"], { DAILY_LIMIT: "50" }));
  expect(code).toBe(78);
  expect(err).toContain("DAILY_LIMIT is 50 at http://127.0.0.1:");
  expect(err).toContain(`and 100 at ${services[0]?.url}`);
});

test("an unreachable or unsuitable server is reported without the password", async () => {
  await using world = await openInstallation();
  const url = new URL(await (await server).newDatabase());
  url.password = "hunter2";
  url.pathname = "/no_such_database";
  const refused = await ended(world.start(["serve"], { ...KEY, DATABASE_URL: url.href }));
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("cannot be used: database")]);
  const latin = await latinDatabase(await (await server).newDatabase());
  const unusable = await ended(world.start(["serve"], { ...KEY, DATABASE_URL: latin }));
  expect([unusable.code, unusable.err]).toEqual([78, expect.stringContaining("encoding is SQL_ASCII")]);
  url.port = "1";
  const examined = await ended(world.start(["doctor"], { ...KEY, DATABASE_URL: url.href }));
  expect([examined.code, examined.out]).toEqual([1, expect.stringContaining("WRONG   log: postgres://127.0.0.1:1/")]);
  const unreachable = await ended(world.start(["stats"], { ...KEY, DATABASE_URL: url.href }));
  expect([unreachable.code, unreachable.err]).toEqual([75, expect.stringContaining("does not answer")]);
  expect(refused.err + unreachable.err).not.toContain("hunter2");
});

test("sslmode=verify-full connects with TLS, and refuses a wrong certificate", async () => {
  await using postgres = await startPostgresWithTls();
  const { server: proving, certificate } = postgres;
  await using world = await openInstallation();
  const url = `${await proving.newDatabase()}?sslmode=verify-full`;
  const service = await world.serve({ ...KEY, DATABASE_URL: `${url}&sslrootcert=${certificate}` });
  expect((await click(service)).status).toBe(202);
  const connections = await proving.ask(CONNECTIONS);
  expect(connections.length).toBeGreaterThan(1);
  expect(connections.every(({ ssl }) => ssl)).toBe(true);
  const refused: [string, RegExp, number][] = [
    [`${url}&sslrootcert=${certificate}`.replace("127.0.0.1", "localhost"), /does not match certificate/, 75],
    // This URL names two servers. The certificate matches the first one, which does not answer, but not the second one,
    // so the connection is refused.
    [
      `${url}&sslrootcert=${certificate}`.replace("127.0.0.1", "127.0.0.1:1,localhost"),
      /does not match certificate/,
      75,
    ],
    [url, /self.signed certificate/, 75],
    [`${url}&sslrootcert=${world.directory}/none.crt`, /sslrootcert=\S+none\.crt cannot be read/, 78],
  ];
  for (const [DATABASE_URL, reason, code] of refused) {
    const end = await ended(world.start(["serve"], { ...KEY, DATABASE_URL }));
    expect([end.code, end.err]).toEqual([code, expect.stringMatching(reason)]);
  }
});

/**
 * Query that tells for each of the test's connections if it uses TLS. It leaves out connections that are still being
 * made: they have no database yet, and PostgreSQL 18 shows them without TLS.
 */
const CONNECTIONS =
  "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE datname LIKE 'test%' AND backend_type = 'client backend'";

test("after a server lost events the instance exits, and a start needs --accept-loss", async () => {
  await using instances = await openInstances(1);
  const { world, services } = instances;
  const [one] = services as [Running];
  for (let n = 0; n < 5; n++) await click(one);
  const url = world.env["DATABASE_URL"] ?? "";
  // Simulates a failover to a standby that lagged behind.
  await lose(url, 3);
  expect(await one.process.exited).toBe(70);
  expect(one.log()).toContain("no longer holds position");
  const refused = await ended(world.start(["serve"]));
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("--accept-loss")]);
  const accepting = await untilListening(world.start(["serve", "--accept-loss"]));
  expect((await click(accepting)).status).toBe(202);
  expect(await stop(accepting)).toBe(0);
  expect(await stop(await world.serve())).toBe(0);
  const types = (await exported(world)).map(({ type }) => type);
  expect(types.filter((type) => type === "LogLossAccepted")).toHaveLength(1);
});

/** Loses events: deletes all of them from position `from` on, which no program of reachlog can do. */
async function lose(url: string, from: number): Promise<void> {
  const database = openDatabase({ url, connections: 1, name: "test" });
  try {
    await database.run((sql) =>
      sql.begin(async (transaction) => {
        // The lock keeps the instance from appending an outcome now. After such an append, the log would end where the
        // instance expects, and the instance would not notice the loss.
        await transaction`SELECT FROM eventstore.turn FOR UPDATE`;
        await transaction`ALTER TABLE eventstore.events DISABLE TRIGGER USER`;
        await transaction`DELETE FROM eventstore.events WHERE position >= ${from}`;
        await transaction`DELETE FROM eventstore.snapshots WHERE position >= ${from}`;
        await transaction`ALTER TABLE eventstore.events ENABLE TRIGGER USER`;
      }),
    );
  } finally {
    await database.close();
  }
}

/** Creates a database that cannot store all texts, on the server of `beside`. Returns its URL. */
async function latinDatabase(beside: string): Promise<string> {
  const database = openDatabase({ url: beside, connections: 1, name: "test" });
  try {
    await database.run((sql) => sql`CREATE DATABASE latin TEMPLATE template0 ENCODING 'SQL_ASCII'`);
  } finally {
    await database.close();
  }
  return new URL("/latin", beside).href;
}
