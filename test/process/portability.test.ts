// On the process harness.
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { openSqliteStore, type NewEvent } from "eventstore-lite";
import { BEARER, exported, openInstallation, until, type Installation, kill, stop } from "../harness/process.ts";
import { onRuntime } from "../harness/runtime.ts";

/** Each starts several processes, and a busy machine needs longer than the runner's five seconds. */
const TIMEOUT_MS = 1_200_000;

const CLICK = {
  event: "link.clicked",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://example.com/welcome",
};

function logOf(world: Installation): string {
  return join(world.directory, "reachlog.sqlite");
}

/** A command as a process of its own, with its pipes. */
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

test(
  "a backup beside a service that serves: whole, private, and never over another",
  async () => {
    await using world = await openInstallation();
    const service = await world.serve();
    const clicks = Array.from({ length: 200 }, () => service.post("/api/tracking/event", CLICK, BEARER));
    const copy = join(world.directory, "copies", "one.sqlite");
    const { code, out, err } = await world.command("backup", copy);
    expect([code, err]).toEqual([0, expect.stringContaining("reachlog.vault.sqlite")]);
    const [, position, hash, bytes] = /: (\d+) events, .*; head \1 ([\da-f]{64}); (\d+) bytes\n$/.exec(out) ?? [];
    expect([statSync(copy).size, statSync(copy).mode & 0o777]).toEqual([Number(bytes), 0o600]);
    expect((await exported(world))[Number(position) - 1]).toMatchObject({ hash });
    for (const answer of await Promise.all(clicks)) expect(answer.status).toBe(202);

    const before = readFileSync(copy);
    const second = await world.command("backup", copy);
    expect([second.code, second.err]).toEqual([1, expect.stringContaining("exists already")]);
    expect(readFileSync(copy).equals(before)).toBe(true);
    expect(readdirSync(join(world.directory, "copies"))).toEqual(["one.sqlite"]);
    expect(await world.command("backup")).toMatchObject({ code: 2 });
  },
  TIMEOUT_MS,
);

test(
  "restoring: a left write-ahead log is refused, and without it the service goes on from the copy",
  async () => {
    await using world = await openInstallation();
    const log = logOf(world);
    const first = await world.serve();
    expect((await first.post("/api/tracking/event", CLICK, BEARER)).status).toBe(202);
    await until(
      () => exported(world),
      (events) => events.some(({ type }) => type === "DispatchSucceeded"),
    );
    const copy = join(world.directory, "copy.sqlite");
    const { position } = JSON.parse((await world.command("backup", copy, "--json")).out) as { position: number };
    expect((await first.post("/api/tracking/event", CLICK, BEARER)).status).toBe(202);
    await kill(first);

    copyFileSync(copy, log);
    const refused = await world.command("audit", "verify");
    expect([refused.code, refused.err]).toEqual([
      78,
      expect.stringContaining(`${log}-wal is of the log that was there`),
    ]);
    for (const suffix of ["-wal", "-shm"]) renameSync(log + suffix, `${log}.old${suffix}`);
    const second = await world.serve();
    expect((await second.get("/api/health")).status).toBe(200);
    expect((await exported(world)).filter(({ type }) => type === "LinkClicked")).toHaveLength(1);
    expect((await world.command("audit", "verify")).code).toBe(0);
    expect((await exported(world)).length).toBeGreaterThanOrEqual(position);
  },
  TIMEOUT_MS,
);

test(
  "an import beside a service is refused; of its export, a new service has the same numbers",
  async () => {
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
    expect((await (await world.serve()).get("/api/health")).status).toBe(200);
  },
  TIMEOUT_MS,
);

test(
  "an import from a pipe; one that is interrupted leaves nothing",
  async () => {
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
    // The rest of it may not be wanted any more.
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
  },
  TIMEOUT_MS,
);

test(
  "an export whose reader leaves ends quietly, and not as a success",
  async () => {
    await using world = await openInstallation();
    await fill(logOf(world), 2_000);
    // Another program reads it: a reader in this process may have taken the whole log before it leaves.
    const { directory, env } = world;
    const script = '{ "$@"; echo "$?" >&2; } | head -c 1';
    const child = Bun.spawn(["sh", "-c", script, "sh", ...onRuntime(["audit", "export"])], {
      cwd: directory,
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    expect({ bytes: out.length, err }).toEqual({ bytes: 1, err: "141\n" });
  },
  TIMEOUT_MS,
);

async function command(world: Installation, ...args: string[]) {
  const child = start(world, ...args);
  const [out, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  return { out, code };
}
