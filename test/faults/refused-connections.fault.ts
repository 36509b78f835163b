import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { openDatabase, type Database } from "eventstore-lite/postgres";
import { startPostgres, type PostgresServer } from "eventstore-lite/testing/postgres-server";
import { BEARER, openInstallation, stop, TOKEN, until, type Running } from "../harness/process.ts";
import { secondsSince } from "./instances.ts";
import { click } from "./load.ts";
import { installedPostgres } from "./server-pair.ts";
import { expectWhole, lossesOf } from "./whole.ts";

/** The server of the npm registry, and Debian's where it is installed. */
const SERVERS: Readonly<Record<string, string | undefined>> = {
  "npm's PostgreSQL": undefined,
  ...(installedPostgres === undefined ? {} : { [`PostgreSQL of ${installedPostgres}`]: installedPostgres }),
};

/** Few, so that other clients can take all of them. */
const CONNECTIONS = "40";

/** Until an instance accepts clicks again: the longest pause between two connects, and the look at the log after it. */
const BACK_MS_MAX = 2_000;

/** Rounds of requests during a fault, one after the other. */
const ROUNDS = 8;

interface Place {
  readonly server: PostgresServer;
  readonly database: string;
  /** Executes a statement of the administrator in the database. */
  administer(statement: string): Promise<void>;
  /** Ends the service's connections, as a restart of the server would. */
  disconnect(): Promise<void>;
}

interface Fault {
  begin(place: Place): Promise<void>;
  end(place: Place): Promise<void>;
}

/** Statements of the administrator; the connections of before are ended in between. */
function statements(begin: (database: string) => string, end: (database: string) => string): Fault {
  return {
    async begin({ administer, database, disconnect }) {
      await administer(begin(database));
      await disconnect();
    },
    async end({ administer, database }) {
      await administer(end(database));
    },
  };
}

function otherClients(): Fault {
  const clients: Database[] = [];
  return {
    async begin({ server, database, disconnect }) {
      const url = `postgres://other@127.0.0.1:${server.port}/${database}`;
      for (let left = Infinity; left > 0; left = (await server.ask(OF_THE_SERVICE)).length) {
        await disconnect();
        for (;;) {
          const client = openDatabase({ url, connections: 1, name: "other" });
          const isRefused = await client
            .run((sql) => sql`SELECT`)
            .then(
              () => false,
              () => true,
            );
          if (isRefused) {
            await client.close();
            break;
          }
          clients.push(client);
        }
      }
    },
    async end() {
      await Promise.all(clients.splice(0).map((client) => client.close()));
    },
  };
}

const OF_THE_SERVICE = "SELECT FROM pg_stat_activity WHERE usename = 'app'";

function rejectedByHost(): Fault {
  let before = "";
  const change = async ({ server }: Place, first: string): Promise<void> => {
    const file = await hostFileOf(server);
    if (before === "") before = readFileSync(file, "utf8");
    writeFileSync(file, first + before);
    await server.ask("SELECT pg_reload_conf()");
  };
  return {
    async begin(place) {
      await change(place, "host all app all reject\n");
      await place.disconnect();
    },
    end: (place) => change(place, ""),
  };
}

const FAULTS: Readonly<Record<string, () => Fault>> = {
  "other clients take all connections (53300)": otherClients,
  "its password was changed (28P01)": () =>
    statements(
      () => "ALTER ROLE app PASSWORD 'another'",
      () => "ALTER ROLE app PASSWORD 'secret'",
    ),
  "its role may not log in (28000)": () =>
    statements(
      () => "ALTER ROLE app NOLOGIN",
      () => "ALTER ROLE app LOGIN",
    ),
  "pg_hba.conf rejects it (28000)": rejectedByHost,
  "its role may not connect to the database (42501)": () =>
    statements(
      (database) => `REVOKE CONNECT ON DATABASE ${database} FROM PUBLIC`,
      (database) => `GRANT CONNECT ON DATABASE ${database} TO PUBLIC`,
    ),
  "its role lost its rights (42501)": () =>
    statements(
      () => "REVOKE USAGE ON SCHEMA eventstore, reachlog_vault FROM app",
      () => "GRANT USAGE ON SCHEMA eventstore, reachlog_vault TO app",
    ),
  "the database is read-only (25006)": () =>
    statements(
      (database) => `ALTER DATABASE ${database} SET default_transaction_read_only = on`,
      (database) => `ALTER DATABASE ${database} RESET default_transaction_read_only`,
    ),
  "the database accepts no connections (55000)": () =>
    statements(
      (database) => `UPDATE pg_database SET datallowconn = false WHERE datname = '${database}'`,
      (database) => `UPDATE pg_database SET datallowconn = true WHERE datname = '${database}'`,
    ),
};

async function hostFileOf(server: PostgresServer): Promise<string> {
  const [setting] = await server.ask("SHOW hba_file");
  return String(setting!["hba_file"]);
}

/** A service whose role has a password and no more rights than it needs. */
async function openWorld(programs: string | undefined) {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(
    await startPostgres({
      settings: { max_connections: CONNECTIONS },
      ...(programs === undefined ? {} : { programs }),
    }),
  );
  const { pathname } = new URL(await server.newDatabase());
  const database = pathname.slice(1);
  await server.ask("CREATE ROLE app LOGIN PASSWORD 'secret'");
  await server.ask("CREATE ROLE other LOGIN");
  await server.ask(`GRANT CREATE ON DATABASE ${database} TO app`);
  const file = await hostFileOf(server);
  writeFileSync(file, `host all app all scram-sha-256\n${readFileSync(file, "utf8")}`);
  await server.ask("SELECT pg_reload_conf()");
  const world = stack.use(await openInstallation());
  Object.assign(world.env, {
    DATABASE_URL: `postgres://app:secret@127.0.0.1:${server.port}/${database}`,
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  });
  const service = await world.serve();
  const administrator = openDatabase({ url: server.url(database), connections: 1, name: "administrator" });
  stack.defer(() => administrator.close());
  const place: Place = {
    server,
    database,
    async administer(statement) {
      await administrator.run((sql) => sql.unsafe(statement));
    },
    async disconnect() {
      await server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    },
  };
  const opened = stack.move();
  return { world, service, place, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** What callers and operators ask for: of the log, of the vault and of what is in memory. */
const READ = [
  "/readyz /api/health /api/audit/head /api/audit/proof/1 /social/health /social/stats /social/me /social/auth /metrics",
  "/ /audit /audit/1 /find?q=ann /people /people/7 /deliveries /setup",
].flatMap((paths) => paths.split(" "));
const WRITTEN: Readonly<Record<string, object | undefined>> = {
  "/social/run": undefined,
  "/social/recipients/suppress": { recipient: "ann" },
  "/social/recipients/forget": { recipient: "ben" },
};

/** The cookie of an operator who may see the console. */
async function signIn(service: Running): Promise<string> {
  const signedIn = await service.get("/session", { method: "POST", body: new URLSearchParams({ token: TOKEN }) });
  return signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** Answers so far of a service, by status and for what; acknowledged clicks by their id. */
function createAnswers() {
  const statuses = new Map<number, number>();
  const faults = new Set<string>();
  const acknowledged = new Set<string>();
  const count = async (answer: Response): Promise<Response> => {
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    if (answer.status === 500) faults.add(new URL(answer.url).pathname);
    return answer;
  };
  return {
    statuses,
    faults,
    acknowledged,
    async click(service: Running): Promise<Response> {
      const answer = await count(await service.post("/api/tracking/event", click(0), BEARER));
      const body = (await answer.clone().json()) as { id?: string };
      if (answer.status === 202 && body.id !== undefined) acknowledged.add(body.id);
      return answer;
    },
    async ask(service: Running, cookie: string): Promise<void> {
      const read = READ.map((path) => service.get(path, { headers: { ...BEARER, cookie, accept: "text/html" } }));
      const written = Object.entries(WRITTEN).map(([path, body]) => service.post(path, body, BEARER));
      const list = { ...BEARER, "content-type": "text/csv" };
      const imported = service.get("/social/recipients", { method: "POST", body: "username\nann\n", headers: list });
      for (const answer of await Promise.all([...read, ...written, imported])) await (await count(answer)).text();
    },
  };
}

/** Lines of a service's log that hold a text. */
function linesWith(service: Running, text: string): readonly string[] {
  return service
    .log()
    .split("\n")
    .filter((line) => line.includes(text));
}

/** Warnings and errors that a service's log says of the same thing more than once. */
function repeatedIn(service: Running): readonly string[] {
  const lines = service
    .log()
    .split("\n")
    .filter((line) => /"level":"(?:warn|error)"/.test(line));
  const subjects = lines.map((line) => {
    const { message, lease, role, channel, positions } = JSON.parse(line) as Record<string, unknown>;
    return JSON.stringify({ message, lease, role, channel, positions });
  });
  return subjects.filter((subject, index) => subjects.indexOf(subject) !== index);
}

for (const [name, programs] of Object.entries(SERVERS)) {
  describe(`${name}: an instance is refused`, () => {
    test.each(Object.keys(FAULTS))(
      "%s: clicks answer 503, and are accepted again within two seconds of its end",
      async (what) => {
        await using opened = await openWorld(programs);
        const { world, service, place } = opened;
        const fault = FAULTS[what]!();
        const answers = createAnswers();
        const cookie = await signIn(service);
        await answers.ask(service, cookie);
        expect((await answers.click(service)).status).toBe(202);

        await fault.begin(place);
        const refused = await until(
          () => answers.click(service),
          ({ status }) => status !== 202,
        );
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
        for (let round = 0; round < ROUNDS; round++) {
          await answers.ask(service, cookie);
          await answers.click(service);
        }
        expect((await service.get("/livez")).status).toBe(200);
        expect((await service.get("/readyz")).status).toBe(503);

        await fault.end(place);
        const endedAt = performance.now();
        await until(
          () => answers.click(service),
          ({ status }) => status === 202,
          BACK_MS_MAX,
        );
        await until(
          () => service.get("/readyz"),
          ({ status }) => status === 200,
          BACK_MS_MAX,
        );
        const backAfter = secondsSince(endedAt);
        await answers.ask(service, cookie);
        console.log(
          `${name}, ${what}: answers ${JSON.stringify(Object.fromEntries(answers.statuses))}, ` +
            `${linesWith(service, '"level":"error"').length} lines of errors, ready ${backAfter} s after its end`,
        );
        expect([...answers.faults]).toEqual([]);
        const outages = linesWith(service, "the log is out of reach").length;
        // A read-only log can be read, but for the moment in which its connections are replaced.
        expect(what.includes("25006") ? [0, 1] : [1]).toContain(outages);
        expect(linesWith(service, "the log is in reach again")).toHaveLength(outages);
        expect(linesWith(service, "requests are refused")).toHaveLength(1);
        expect(linesWith(service, "requests are recorded again")).toHaveLength(1);
        expect(repeatedIn(service)).toEqual([]);
        expect(await stop(service)).toBe(0);
        expect(await lossesOf(world, answers.acknowledged)).toEqual({ lost: [], doubled: [] });
        await expectWhole(world);
      },
      240_000,
    );

    test("for ever, since its server has vanished: every request is answered, and it stops in order", async () => {
      await using opened = await openWorld(programs);
      const { service, place } = opened;
      const cookie = await signIn(service);
      const answers = createAnswers();
      await place.server.stop("immediate");
      for (let round = 0; round < ROUNDS; round++) {
        await answers.click(service);
        await answers.ask(service, cookie);
      }
      expect([answers.acknowledged.size, ...answers.faults]).toEqual([0]);
      expect((await service.get("/livez")).status).toBe(200);
      expect(repeatedIn(service)).toEqual([]);
      const startedAt = performance.now();
      expect(await stop(service)).toBe(0);
      console.log(
        `${name} vanished: answers ${JSON.stringify(Object.fromEntries(answers.statuses))}, ` +
          `stopped in ${secondsSince(startedAt)} s`,
      );
    }, 240_000);
  });
}
