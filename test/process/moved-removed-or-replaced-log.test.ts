// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "eventstore-lite/postgres";
import { newDatabase } from "eventstore-lite/testing";
import { findFreePort } from "../../src/platform/free-port.ts";
import { CLICK } from "../harness/sample-click.ts";
import { openInstallation, stop, until, type Running } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

test("a service with stderr on a full disk starts, accepts clicks and dispatches them", async () => {
  await using world = await openInstallation();
  const port = await findFreePort("127.0.0.1");
  const service = Bun.spawn(onRuntime(["serve"]), {
    cwd: world.directory,
    env: { ...world.env, PORT: String(port), LOG_LEVEL: "debug" },
    stdio: ["ignore", "ignore", Bun.file("/dev/full")],
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    const asked = (): Promise<unknown> =>
      fetch(`${url}/api/health`).then(
        (answer) => answer.json(),
        () => undefined,
      );
    const up = (health: unknown): boolean => health !== undefined || service.exitCode !== null;
    await until(asked, up);
    expect(service.exitCode).toBeNull();
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/api/tracking/event`, { method: "POST", headers, body: JSON.stringify(CLICK) });
    expect(answer.status).toBe(202);
    const settled = await until(asked, (health) => !JSON.stringify(health).match(/"pending":[1-9]/));
    expect(settled).toMatchObject({ status: "ok", channels: { chat: { pending: 0 } } });
    service.kill("SIGTERM");
    expect(await service.exited).toBe(0);
  } finally {
    service.kill("SIGKILL");
    await service.exited;
  }
});

/** Statuses of a click, the health check and the readiness probe, which depend on the log. */
async function answersOn({ get, post }: Running): Promise<readonly number[]> {
  const answers = [post("/api/tracking/event", CLICK), get("/api/health"), get("/readyz")];
  return (await Promise.all(answers)).map(({ status }) => status);
}

const [TAKES, REFUSES] = [
  [202, 200, 200],
  [503, 503, 503],
];

/** A service whose log is in a separate folder. */
async function serveFolder() {
  const world = await openInstallation();
  const folder = join(world.directory, "data");
  mkdirSync(folder);
  const file = join(folder, "log.sqlite");
  world.env["DATABASE_URL"] = `sqlite:${file}`;
  const service = await world.serve();
  expect(await answersOn(service)).toEqual(TAKES);
  return { folder, file, service, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

test("a service refuses clicks while its log's folder is moved away, and logs that once", async () => {
  await using world = await serveFolder();
  const { folder, service } = world;
  renameSync(folder, `${folder}.away`);
  await until(
    () => answersOn(service),
    (answers) => answers.join() === REFUSES.join(),
  );
  await until(
    async () => service.log(),
    (log) => log.includes("the log is out of reach"),
  );
  // Puts an empty folder in the place of the log's folder, as if a mount covered it for a while.
  mkdirSync(folder);
  expect(await answersOn(service)).toEqual(REFUSES);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}.away`, folder);
  await until(
    () => answersOn(service),
    (answers) => answers.join() === TAKES.join(),
  );
  expect(await stop(service)).toBe(0);
  expect(service.log().match(/the log is out of reach/g)).toHaveLength(1);
  expect(service.log()).toContain("is no longer the file that was opened");
});

test.each(["", "-wal", ".keys.sqlite"])(
  "a service is not ready once a file of its log is removed: %j",
  async (suffix) => {
    await using world = await serveFolder();
    rmSync(suffix.startsWith(".") ? world.file.replace(".sqlite", suffix) : world.file + suffix);
    await until(
      () => answersOn(world.service),
      (answers) => answers.slice(1).join() === REFUSES.slice(1).join(),
    );
  },
);

test("a service acknowledges nothing once its log was replaced by a copy", async () => {
  await using world = await serveFolder();
  copyFileSync(world.file, `${world.file}.copy`);
  renameSync(`${world.file}.copy`, world.file);
  await until(
    () => answersOn(world.service),
    (answers) => answers.join() === REFUSES.join(),
  );
});

test.each([
  ["schema is dropped", () => "DROP SCHEMA eventstore CASCADE", "same"],
  ["database is dropped", (name: string) => `DROP DATABASE "${name}" WITH (FORCE)`, "postgres"],
] as const)("a service refuses clicks once its log's %s", async (_, statement, from) => {
  await using world = await openInstallation();
  const url = await newDatabase();
  Object.assign(world.env, { DATABASE_URL: url, REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") });
  const service = await world.serve();
  expect(await answersOn(service)).toEqual(TAKES);
  const elsewhere = new URL(url);
  const name = elsewhere.pathname.slice(1);
  if (from === "postgres") elsewhere.pathname = "/postgres";
  const database = openDatabase({ url: elsewhere.href, connections: 1, name: "test" });
  await database.run((sql) => sql.unsafe(statement(name)));
  await database.close();
  await until(
    () => answersOn(service),
    (answers) => answers.join() === REFUSES.join(),
  );
});
