import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { openDatabase } from "eventstore-lite/postgres";
import { startPostgres, type PostgresServer } from "eventstore-lite/testing";
import { authorize, BEARER, openInstallation, stop, TOKEN, until, type Running } from "../harness/process.ts";
import { formTokenIn, oneOfEach, type OneRequest } from "../http/request-each-endpoint.ts";
import { secondsSince } from "./instances.ts";
import { click } from "./click-load.ts";
import { installedPostgres } from "./postgres-primary-and-standby.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";

/** Folders with the programs of the tested PostgreSQL servers: npm's, and Debian's if it is installed. */
const SERVERS: Readonly<Record<string, string | undefined>> = {
  "npm's PostgreSQL": undefined,
  ...(installedPostgres === undefined ? {} : { [`PostgreSQL of ${installedPostgres}`]: installedPostgres }),
};

/**
 * Maximum time in ms until an instance accepts clicks again. It covers the longest pause before the instance
 * reconnects, and its next look at the log.
 */
const BACK_MS_MAX = 2_000;

/** Number of times that all requests are made during a fault, one round after another. */
const ROUNDS = 8;

/** Time in ms for which requests continue after a database server has vanished for good. */
const VANISHED_MS = 10_000;

interface Place {
  readonly server: PostgresServer;
  readonly database: string;
  /** URL by which the service reaches the database. */
  readonly url: string;
  /** Executes a statement in the database as the administrator. */
  administer(statement: string): Promise<void>;
  /** Ends the service's connections, as a restart of the server would. */
  disconnect(): Promise<void>;
}

interface Fault {
  begin(place: Place): Promise<void>;
  end(place: Place): Promise<void>;
}

/**
 * A fault that statements of the administrator begin and end; the existing connections are ended after the first one.
 */
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
  "its role has no connections left (53300)": () =>
    statements(
      () => "ALTER ROLE app CONNECTION LIMIT 0",
      () => "ALTER ROLE app CONNECTION LIMIT -1",
    ),
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

/** Faults for the tests in which the database server holds only the key store. */
const FAULTS_OF_KEYS: Readonly<Record<string, () => Fault>> = {
  "the key store has no connections left (53300)": FAULTS["its role has no connections left (53300)"]!,
  "the server of the key store is stopped": () => ({
    begin: ({ server }) => server.stop("immediate"),
    end: ({ server }) => server.start(),
  }),
};

async function hostFileOf(server: PostgresServer): Promise<string> {
  const [setting] = await server.ask("SHOW hba_file");
  return String(setting!["hba_file"]);
}

/** Opens a database server with a role that has a password and only the rights that it needs. */
async function openPlace(programs: string | undefined): Promise<Place & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await startPostgres(programs === undefined ? {} : { programs }));
  const { pathname } = new URL(await server.newDatabase());
  const database = pathname.slice(1);
  await server.ask("CREATE ROLE app LOGIN PASSWORD 'secret'");
  await server.ask(`GRANT CREATE ON DATABASE ${database} TO app`);
  const file = await hostFileOf(server);
  writeFileSync(file, `host all app all scram-sha-256\n${readFileSync(file, "utf8")}`);
  await server.ask("SELECT pg_reload_conf()");
  const administrator = openDatabase({ url: server.url(database), connections: 1, name: "administrator" });
  stack.defer(() => administrator.close());
  const opened = stack.move();
  return {
    server,
    database,
    url: `postgres://app:secret@127.0.0.1:${server.port}/${database}`,
    async administer(statement) {
      await administrator.run((sql) => sql.unsafe(statement));
    },
    async disconnect() {
      await server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'");
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/**
 * Starts a service with an account and a recipient. The faults hit `place`: the database server of the log and
 * everything else or, if `isOfKeys`, a second server for the key store alone.
 */
async function openWorld(programs: string | undefined, isOfKeys = false) {
  await using stack = new AsyncDisposableStack();
  const log = stack.use(await openPlace(programs));
  const place = isOfKeys ? stack.use(await openPlace(programs)) : log;
  const world = stack.use(await openInstallation());
  Object.assign(world.env, {
    DATABASE_URL: log.url,
    KEYS_DATABASE_URL: place.url,
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  });
  const service = await world.serve();
  await authorize(service, world.sandbox);
  await service.post("/social/recipients", [{ username: "sara_sells" }], BEARER);
  const opened = stack.move();
  return { world, service, place, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Returns one request to each endpoint, so that the log, the vault and the service's memory are all used. */
async function requestsTo(service: Running): Promise<readonly OneRequest[]> {
  const signedIn = await service.get("/session", { method: "POST", body: new URLSearchParams({ token: TOKEN }) });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await (await service.get("/setup", { headers: { cookie, accept: "text/html" } })).text();
  const document = await (await service.get("/openapi.json")).text();
  return oneOfEach(document, { token: TOKEN, cookie, formToken: formTokenIn(page) });
}

/** Problem type for an append that may or may not be in the log, so a repeat might record the same click twice. */
const IN_DOUBT = "urn:reachlog:problem:log-in-doubt";

/**
 * Collects the service's answers: their number by status, the answers that the injected faults do not explain, and the
 * ids of acknowledged clicks.
 */
function createAnswers(service: Running) {
  const statuses = new Map<number, number>();
  const wrong = new Set<string>();
  const acknowledged = new Set<string>();
  const count = async (answer: Response, { path, init }: OneRequest): Promise<Response> => {
    const { status, headers } = answer;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    const isSilent = status === 503 && !headers.has("retry-after") && !(await answer.clone().text()).includes(IN_DOUBT);
    if (status === 500 || isSilent) wrong.add(`${init.method ?? "GET"} ${path}: ${status}`);
    return answer;
  };
  return {
    statuses,
    wrong,
    acknowledged,
    async click(): Promise<Response> {
      const path = "/api/tracking/event";
      const answer = await count(await service.post(path, click(0), BEARER), {
        path,
        init: { method: "POST", headers: BEARER },
      });
      const body = (await answer.clone().json()) as { id?: string };
      if (answer.status === 202 && body.id !== undefined) acknowledged.add(body.id);
      return answer;
    },
    /** Sends all requests at the same time. */
    async ask(requests: readonly OneRequest[]): Promise<void> {
      const asked = requests.map(async (one) => {
        const answer = await count(await service.get(one.path, one.init), one);
        // The event stream never ends by itself, so its body is cancelled instead of read.
        await (one.path === "/events" ? answer.body?.cancel() : answer.text());
      });
      const results = await Promise.allSettled(asked);
      for (const [at, { status }] of results.entries()) {
        if (status === "rejected") wrong.add(`${requests[at]?.path}: broken off`);
      }
    },
  };
}

/** Lines of a service's log that contain a text. */
function linesWith(service: Running, text: string): readonly string[] {
  return service
    .log()
    .split("\n")
    .filter((line) => line.includes(text));
}

/** Message that the service logs once for each request while the log is read-only, so repetitions of it are allowed. */
const OF_ONE_REQUEST = "the log could not be verified";

/** Returns what the service's warnings and errors are about, if it logged more than one about the same thing. */
function repeatedIn(service: Running): readonly string[] {
  const lines = service
    .log()
    .split("\n")
    .filter((line) => /"level":"(?:warn|error)"/.test(line) && !line.includes(OF_ONE_REQUEST));
  const subjects = lines.map((line) => {
    const { message, lease, role, channel, positions } = JSON.parse(line) as Record<string, unknown>;
    return JSON.stringify({ message, lease, role, channel, positions });
  });
  return subjects.filter((subject, index) => subjects.indexOf(subject) !== index);
}

for (const [name, programs] of Object.entries(SERVERS)) {
  describe(`an instance that ${name} refuses`, () => {
    test.each(Object.keys({ ...FAULTS, ...FAULTS_OF_KEYS }))(
      "answers clicks with 503 and accepts them within two seconds afterwards: %s",
      async (what) => {
        const faultOfKeys = FAULTS_OF_KEYS[what];
        await using opened = await openWorld(programs, faultOfKeys !== undefined);
        const { world, service, place } = opened;
        const fault = (faultOfKeys ?? FAULTS[what]!)();
        const answers = createAnswers(service);
        const requests = await requestsTo(service);
        expect((await answers.click()).status).toBe(202);

        await fault.begin(place);
        // A click that was already on its way to the log gets the answer "in doubt" instead of a refusal, so the click
        // is repeated until one is refused.
        const refused = await until(
          () => answers.click(),
          ({ status, headers }) => status !== 202 && headers.has("retry-after"),
        );
        expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
        for (let round = 0; round < ROUNDS; round++) {
          await answers.ask(requests);
          await answers.click();
        }
        // The service looks at the log only now and then, so the rounds may end before it notices the fault. A
        // read-only log stays readable, so there the service may notice nothing.
        const isReadable = what.includes("25006");
        if (!isReadable) {
          await until(
            async () => linesWith(service, "the log is out of reach").length,
            (lines) => lines > 0,
          );
        }
        expect((await service.get("/livez")).status).toBe(200);
        const refusing = [service.get("/readyz"), service.get("/api/health"), service.post("/social/run", {}, BEARER)];
        for (const { status, headers } of await Promise.all(refusing)) {
          expect([status, headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
        }

        await fault.end(place);
        const endedAt = performance.now();
        await until(
          () => answers.click(),
          ({ status }) => status === 202,
          BACK_MS_MAX,
        );
        await until(
          () => service.get("/readyz"),
          ({ status }) => status === 200,
          BACK_MS_MAX,
        );
        const backAfter = secondsSince(endedAt);
        await answers.ask(requests);
        console.log(
          `${name}, ${what}: answers ${JSON.stringify(Object.fromEntries(answers.statuses))}, ` +
            `${linesWith(service, '"level":"error"').length} lines of errors, ready ${backAfter} s after its end`,
        );
        expect([...answers.wrong]).toEqual([]);
        const outages = linesWith(service, "the log is out of reach").length;
        expect(isReadable ? [0, 1] : [1]).toContain(outages);
        expect(linesWith(service, "the log is in reach again")).toHaveLength(outages);
        expect(linesWith(service, "requests are refused")).toHaveLength(1);
        expect(linesWith(service, "requests are recorded again")).toHaveLength(1);
        expect(repeatedIn(service)).toEqual([]);
        expect(await stop(service)).toBe(0);
        expect(await lossesOf(world, answers.acknowledged)).toEqual({ lost: [], doubled: [] });
        await expectWhole(world);
      },
    );

    test("answers every request and stops in order after its server has vanished", async () => {
      await using opened = await openWorld(programs);
      const { service, place } = opened;
      const requests = await requestsTo(service);
      const [atTheMoment, answers] = [createAnswers(service), createAnswers(service)];
      const [setting] = await place.server.ask("SHOW data_directory");
      await Promise.all([place.server.stop("immediate"), atTheMoment.ask(requests)]);
      rmSync(String(setting!["data_directory"]), { recursive: true });
      const vanishedAt = performance.now();
      while (performance.now() - vanishedAt < VANISHED_MS) await Promise.all([answers.click(), answers.ask(requests)]);
      expect(atTheMoment.statuses.get(500)).toBeUndefined();
      expect([answers.acknowledged.size, ...answers.wrong]).toEqual([0]);
      expect((await service.get("/livez")).status).toBe(200);
      expect(repeatedIn(service)).toEqual([]);
      const startedAt = performance.now();
      expect(await stop(service)).toBe(0);
      console.log(
        `${name} vanished: answers ${JSON.stringify(Object.fromEntries(answers.statuses))}, at the moment ` +
          `${JSON.stringify(Object.fromEntries(atTheMoment.statuses))} (${[...atTheMoment.wrong].join(", ")}), ` +
          `stopped in ${secondsSince(startedAt)} s`,
      );
    });
  });
}
