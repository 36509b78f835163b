// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findFreePort } from "../../src/platform/free-port.ts";
import { startPostgresWithTls } from "../harness/postgres-with-tls.ts";
import {
  authorize,
  BEARER,
  ended,
  exported,
  openInstallation,
  stop,
  until,
  untilListening,
  type Installation,
  type Running,
} from "../harness/process.ts";
import { DENO_DIR, denoProgram } from "../harness/bun-deno-or-binary.ts";

const ROOT = join(import.meta.dirname, "../..");
const CLICK = { event: "click", domain: "go.example", short_code: "s", original_url: "https://shop.example/" };

/** Returns the command of `deno task serve`, optionally with another program instead of the service. */
function serveTask(program = "src/main.ts serve"): string {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8")) as { tasks: { serve: string } };
  const task = tasks.serve.replace("&& deno", "&& exec deno").replace("src/main.ts serve", program);
  return task.replaceAll(/(src|deploy|test)\//g, `${ROOT}/$1/`);
}

/** Folder for tests, outside of `/dev`: without full permissions, Deno denies everything below it, memory disks too. */
const DISK = "/var/tmp";

interface Folder extends AsyncDisposable {
  readonly world: Installation;
  readonly path: string;
}

/** A folder that was never used, with settings in `.env` and none in the environment. */
async function openFolder(more: Readonly<Record<string, string>> = {}): Promise<Folder> {
  const path = mkdtempSync(join(DISK, "reachlog-deno-"));
  const world = await openInstallation({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  Object.assign(world.env, {
    PORT: String(await findFreePort("127.0.0.1")),
    DATABASE_URL: `sqlite:${join(path, "data/reachlog.sqlite")}`,
    ...more,
  });
  const { PATH: _path, ...settings } = world.env;
  writeFileSync(
    join(path, ".env"),
    Object.entries(settings)
      .map(([name, value]) => `${name}='${value}'\n`)
      .join(""),
  );
  return {
    world,
    path,
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

function start({ path }: Folder, line: string, ...args: string[]): Running["process"] {
  return Bun.spawn(["sh", "-c", `${line} "$@"`, "sh", ...args], {
    cwd: path,
    env: { PATH: `${dirname(denoProgram())}:${process.env["PATH"]}`, HOME: path, DENO_DIR },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

test("on Deno with its permissions, the service dispatches a click, makes a run and streams events", async () => {
  await using folder = await openFolder();
  const { world } = folder;
  await world.command("recipients", "import", world.file("people.csv", "username,basis\nada_builds,opt_in\n"));
  const service = await untilListening(start(folder, serveTask()));
  using _ended = { [Symbol.dispose]: () => service.process.kill("SIGKILL") };

  const figures = await (await service.get("/metrics", { headers: { authorization: BEARER.authorization } })).text();
  expect(figures).toMatch(/^reachlog_disk_available_bytes \d+$/m);
  const stream = await service.get("/events?from=1", { headers: { authorization: BEARER.authorization } });
  await authorize(service, world.sandbox);
  expect((await service.post("/api/tracking/event", CLICK, BEARER)).status).toBe(202);
  const ran = await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" });
  expect([ran.status, [...world.sandbox.x.accepted.values()]]).toEqual([200, [1]]);
  const succeeded = (await until(() => exported(world), isDispatched)).filter(
    ({ type }) => type === "DispatchSucceeded",
  );
  expect(succeeded.length).toBeGreaterThan(0);

  const types = new Set<string>();
  for await (const chunk of (stream.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream())) {
    for (const [, type = ""] of chunk.matchAll(/"type":"(\w+)"/g)) types.add(type);
    if (types.has("LinkClicked") && types.has("RunFinished")) break;
  }
  // Waits until the service has noticed that the reader of the event stream is gone.
  await until(
    async () => (await service.get("/metrics", { headers: BEARER })).text(),
    (metrics) => metrics.includes("\nreachlog_event_streams 0\n"),
  );
  expect(await stop(service)).toBe(0);
  expect(service.log()).not.toContain('"level":"error"');
});

function isDispatched(events: readonly { readonly type: string; readonly data: Record<string, unknown> }[]): boolean {
  return events.some(({ type }) => type === "DispatchSucceeded") && events.some(({ type }) => type === "RunFinished");
}

test("on Deno the runtime refuses all access that the service does not need", async () => {
  await using folder = await openFolder();
  using other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const writable = join(folder.path, "data");
  mkdirSync(writable);
  const tried = { allowed: folder.world.sandbox.url, other: other.url.href, writable, outside: folder.path };
  expect(await reachOut(folder, tried)).toEqual([
    "an address that is configured: done",
    "another port of it: refused",
    "another host: refused",
    "listening elsewhere: refused",
    "a file where the log lies: done",
    "a file beside that: refused",
    ...REFUSED_ANYWHERE,
  ]);
});

test.each([
  ["a space", "my logs"],
  ["a comma", "logs,etc"],
])("on Deno a log folder with %s in its path is refused", async (what, name) => {
  await using folder = await openFolder();
  writeFileSync(join(folder.path, ".env"), `DATABASE_URL='sqlite:${join(folder.path, name, "log.sqlite")}'\n`);
  const { code, out, err } = await ended(start(folder, serveTask()));
  expect([code, out]).toEqual([78, ""]);
  expect(err).toBe(
    `deno-permissions: ${JSON.stringify(join(folder.path, name))} has ${what}, which ends a path in Deno's flags; ` +
      "name a path without spaces and commas\n",
  );
});

test("on Deno PostgreSQL is reached with TLS, and other servers and files are refused", async () => {
  await using postgres = await startPostgresWithTls();
  const { server, certificate } = postgres;
  const url = `${await server.newDatabase()}?sslmode=verify-full&sslrootcert=${certificate}`;
  await using folder = await openFolder({ DATABASE_URL: url, REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") });
  using other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });

  const service = await untilListening(start(folder, serveTask()));
  using _ended = { [Symbol.dispose]: () => service.process.kill("SIGKILL") };
  expect((await service.post("/api/tracking/event", CLICK, BEARER)).status).toBe(202);
  await until(
    () => exported(folder.world),
    (events) => events.some(({ type }) => type === "DispatchSucceeded"),
  );
  expect(await stop(service)).toBe(0);
  expect(service.log()).not.toContain('"level":"error"');

  const tried = { allowed: url, other: other.url.href, writable: folder.path, outside: folder.path };
  expect(await reachOut(folder, tried)).toEqual([
    "an address that is configured: done",
    "another port of it: refused",
    "another host: refused",
    "listening elsewhere: refused",
    "a file where the log lies: refused",
    "a file beside that: refused",
    ...REFUSED_ANYWHERE,
  ]);
});

const REFUSED_ANYWHERE = [
  "a file of the machine: refused",
  "the program itself: refused",
  "another program: refused",
  "the machine's own addresses: refused",
  "a library of the machine: refused",
];

/**
 * Tries what an attacker in control of the service would try: calls and writes. Returns the outcome of each as a line.
 */
async function reachOut(folder: Folder, tried: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { code, out, err } = await ended(
    start(folder, serveTask("test/process/programs/attempt-forbidden-access.ts"), JSON.stringify(tried)),
  );
  expect([code, err]).toEqual([0, ""]);
  return out.trim().split("\n");
}
