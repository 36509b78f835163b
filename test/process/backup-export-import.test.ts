// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore, type NewEvent } from "eventstore-lite";
import {
  authorize,
  BEARER,
  exported,
  openInstallation,
  until,
  type Installation,
  type ListeningService,
  kill,
  stop,
} from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const CLICK = {
  event: "link.clicked",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://example.com/welcome",
};

function logOf(world: Installation): string {
  return join(world.directory, "reachlog.sqlite");
}

/** Starts a command as a process with pipes. */
function start(world: Installation, ...args: string[]) {
  const { directory, env } = world;
  return Bun.spawn(onRuntime(args), { cwd: directory, env, stdio: ["pipe", "pipe", "pipe"] });
}

/** Writes a log of `count` events of about a kilobyte each. */
async function fill(file: string, count: number): Promise<void> {
  await using store = await openSqliteStore({ file });
  const event: NewEvent = { id: "1", type: "T", data: "x".repeat(1_000), meta: {} };
  const batch = Array.from({ length: 1_000 }, () => event);
  for (let at = 0; at < count; at += batch.length) await store.append("a", batch);
}

test("a backup made under load restores all earlier clicks, and no second message is sent", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  const people = "username,basis\nada_builds,opt_in\ngrace_codes,opt_in\n";
  await world.command("recipients", "import", world.file("p.csv", people));
  const service = await world.serve();
  await authorize(service, world.sandbox);
  const run = (of: ListeningService) => of.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  expect(await (await run(service)).json()).toMatchObject({ sent: 2 });
  expect(await world.command("recipients", "forget", "ada_builds", "--yes")).toMatchObject({ code: 0 });
  const post = async (): Promise<string> => {
    const answer = await service.post("/api/tracking/event", CLICK, BEARER);
    expect(answer.status).toBe(202);
    return ((await answer.json()) as { id: string }).id;
  };
  const before = await Promise.all(Array.from({ length: 50 }, post));
  const clicks = Array.from({ length: 200 }, post);
  const folder = join(world.directory, "backup");
  const [made, forgotten] = await Promise.all([
    world.command("backup", folder, "--json"),
    world.command("recipients", "forget", "grace_codes", "--yes"),
  ]);
  expect([made.code, made.err, forgotten.code]).toEqual([0, "", 0]);
  await Promise.all(clicks);
  const { position } = JSON.parse(made.out) as { position: number };
  const all = await exported(world);
  await kill(service);

  await using place = await openInstallation();
  Object.assign(place.env, world.env, { DATABASE_URL: place.env["DATABASE_URL"] });
  copyFileSync(join(world.directory, "reachlog.key"), join(place.directory, "reachlog.key"));
  const proven = await place.command("restore", folder, "--rehearse");
  expect([proven.code, proven.err]).toEqual([0, ""]);
  expect(await place.command("restore", folder)).toMatchObject({ code: 0 });
  expect((await place.command("audit", "verify")).code).toBe(0);
  const restored = await exported(place);
  expect(restored.map(({ hash }) => hash)).toEqual(all.slice(0, position).map(({ hash }) => hash));
  const ids = new Set(restored.map(({ id }) => id));
  expect(before.filter((id) => !ids.has(id))).toEqual([]);

  const again = await place.host();
  expect(await (await run(again)).json()).toMatchObject({ reason: "log_restored", sent: 0 });
  await place.command("recipients", "import", place.file("p.csv", people));
  const known = (await place.command("recipients", "list")).out;
  // The second recipient was forgotten while the backup was made, so the restored copy may or may not contain the
  // erasure.
  const isSecondForgotten = restored.filter(({ type }) => type === "PersonForgotten").length === 2;
  expect(known).not.toContain("ada_builds");
  if (isSecondForgotten) expect(known).not.toContain("grace_codes");
  expect(world.sandbox.x.messages.total).toBe(2);
  expect(await stop(again)).toBe(0);
});

test("an import needs a stopped service and an empty log, and restores the statistics", async () => {
  await using world = await openInstallation();
  await world.command(
    "recipients",
    "import",
    world.file("p.csv", "username,basis\nada_builds,opt_in\ngrace_codes,none\n"),
  );
  const file = join(world.directory, "export.jsonl");
  await world.command("audit", "export", "--out", file);
  const stats = (await world.command("stats", "--json")).out;
  const head = JSON.parse((await world.command("audit", "verify", "--json")).out).head as { hash: string };
  const service = await world.serve();
  const owned = await world.command("audit", "import", file);
  expect([owned.code, owned.err]).toEqual([75, expect.stringContaining(`pid ${service.process.pid}`)]);
  await stop(service);
  expect(await world.command("audit", "import", file)).toMatchObject({
    code: 1,
    err: expect.stringContaining("holds events"),
  });

  for (const name of readdirSync(world.directory))
    if (name.startsWith("reachlog.sqlite")) rmSync(join(world.directory, name));
  expect(await world.command("audit", "import", file)).toMatchObject({
    code: 0,
    out: `2 events imported; head 2 ${head.hash}\n`,
  });
  expect((await world.command("stats", "--json")).out).toBe(stats);
  expect((await (await world.host()).get("/api/health")).status).toBe(200);
});

test("an interrupted import from a pipe leaves nothing, and a complete one succeeds", async () => {
  await using world = await openInstallation();
  const source = join(world.directory, "source.sqlite");
  await fill(source, 2_000);
  const { out } = await command(
    { ...world, env: { ...world.env, DATABASE_URL: `sqlite:${source}` } },
    "audit",
    "export",
  );

  const cut = start(world, "audit", "import", "-");
  void cut.stdin.write(out.slice(0, out.length / 2));
  await cut.stdin.flush();
  await until(
    async () => readdirSync(world.directory),
    (names) => names.some((name) => name.endsWith(".partial")),
  );
  cut.kill("SIGTERM");
  void cut.stdin.write(out.slice(out.length / 2));
  // The end of the input may fail, because the interrupted command may no longer read it.
  await Promise.resolve(cut.stdin.end()).catch(() => {});
  expect(await cut.exited).toBe(1);
  expect(await new Response(cut.stderr).text()).toContain("interrupted; nothing was imported");
  expect(readdirSync(world.directory).filter((name) => name.endsWith(".partial"))).toEqual([]);
  expect(existsSync(logOf(world))).toBe(false);

  const whole = start(world, "audit", "import", "-");
  void whole.stdin.write(out);
  await whole.stdin.end();
  expect([await whole.exited, await new Response(whole.stdout).text()]).toEqual([
    0,
    expect.stringMatching(/^2000 events/),
  ]);
});

test("an export exits with 141 if its reader leaves", async () => {
  await using world = await openInstallation();
  await fill(logOf(world), 2_000);
  // The export's reader is a separate program, `head`, which leaves after one byte. A reader in this process could
  // receive the whole export before it leaves.
  const { directory, env } = world;
  const script = '{ "$@"; echo "$?" >&2; } | head -c 1';
  const child = Bun.spawn(["sh", "-c", script, "sh", ...onRuntime(["audit", "export"])], {
    cwd: directory,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect({ bytes: out.length, err }).toEqual({ bytes: 1, err: "141\n" });
});

async function command(world: Installation, ...args: string[]) {
  const child = start(world, ...args);
  const [out, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  return { out, code };
}
