// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { findFreePort } from "../../src/platform/free-port.ts";
import { idle } from "../faults/expect-daily-limit-kept.ts";
import {
  authorize,
  openInstallation,
  stop,
  TOKEN,
  type Installation,
  type ListeningService,
} from "../harness/process.ts";

async function serveAuthorized(world: Installation, more: Record<string, string> = {}): Promise<ListeningService> {
  const list = world.file("people.csv", "username,basis\nada_builds,opt_in\nclosed_carl,opt_in\n");
  await world.command("recipients", "import", list);
  const service = await world.host(more);
  await authorize(service, world.sandbox);
  return service;
}

test("outreach run makes a dry run and starts a run through the running service", async () => {
  await using world = await openInstallation();
  const service = await serveAuthorized(world);
  const dry = await world.command("outreach", "run", "--dry-run", "--url", service.url);
  expect(dry).toMatchObject({ code: 0, err: "" });
  expect(dry.out).toContain("@ada_builds (1700000000000011000)");
  expect(dry.out).toContain("cannot receive dm");
  expect(dry.out).toMatch(/^1 to send, 1 to skip, ended: completed; it would cost at most \d+\.\d\d USD$/m);
  expect(dry.out).toContain("Add {{optout}}, or a sentence with one of STOP_WORDS");
  expect(world.sandbox.x.accepted.size).toBe(0);
  const unknown = await world.command("outreach", "run", "--variant", "Q", "--url", service.url);
  expect(unknown).toMatchObject({ code: 1, err: "No run was started. The template has no variant Q. Choose A.\n" });
  const others = await world.command("outreach", "run", "--dry-run", "--basis", "dm_first", "--url", service.url);
  expect(others.out).toStartWith("0 to send, 0 to skip, ended: completed");
  const named = ["--recipient", "@ada_builds", "--recipient", "@ben_unknown"];
  const rehearsed = await world.command("outreach", "run", "--dry-run", ...named, "--url", service.url);
  expect(rehearsed.out).toContain("1 to send, 1 to skip, ended: completed");
  const run = await world.command("outreach", "run", "--limit", "1", "--source", "list", "--url", service.url);
  expect(run.out).toMatch(/^run [0-9a-f-]{36} has started\n$/);
  const started = await world.command("audit", "export", "--type", "RunStarted");
  expect(started.out).toContain(run.out.split(" ")[1] ?? "none");
  expect(started.out).toContain('"limit":1,"source":"list"');
  await idle(service);
  const again = await world.command("outreach", "run", ...named, "--url", service.url);
  expect(again.out).toMatch(/@ada_builds.*gets no message.*already contacted/);
  expect(again.out).toMatch(/@ben_unknown.*gets no message.*no consent/);
  expect(again.out).toMatch(/^run [0-9a-f-]{36} has started$/m);
});

test("a refusal by the service, and a missing service, are reported in one sentence", async () => {
  await using world = await openInstallation();
  const service = await world.host({ AUTH_POLICY: "strict", X_ACCOUNT: "acme_team" });
  const refused = await world.command("outreach", "run", "--url", service.url);
  expect(refused).toEqual({
    code: 1,
    out: "",
    err: "the service needs a token: set REACHLOG_TOKEN to one of its API tokens\n",
  });
  world.env["REACHLOG_TOKEN"] = TOKEN;
  const unlinked = await world.command("outreach", "run", "--url", service.url);
  expect(unlinked).toMatchObject({ code: 1, err: "No X account is authorized: open /social/auth in a browser.\n" });
  expect(await stop(service)).toBe(0);
  const missing = await world.command("outreach", "run", "--url", service.url);
  expect(missing.code).toBe(75);
  expect(missing.err).toStartWith(`no service answers at ${service.url} (`);
  expect(await world.command("outreach", "run", "--url", "here")).toMatchObject({ code: 2 });
});

const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };

test.each(["SQLite", "PostgreSQL"])(
  "a command refuses a service of another log unless --url names it: %s",
  async (engine) => {
    await using stack = new AsyncDisposableStack();
    const [other, own] = [stack.use(await openInstallation()), stack.use(await openInstallation())];
    if (engine === "PostgreSQL") {
      for (const { env } of [other, own]) Object.assign(env, KEY, { DATABASE_URL: await newDatabase() });
    }
    const service = await serveAuthorized(other);
    // The second installation has its own log, but its settings name the first service's address.
    await stop(await own.host());
    Object.assign(own.env, { PORT: new URL(service.url).port, REACHLOG_TOKEN: TOKEN });
    for (const args of [["outreach", "run"], ["outreach", "run", "--dry-run"], ["deliveries", "test"], ["ready"]]) {
      const refused = await own.command(...args);
      expect(refused).toMatchObject({ code: 78, out: "" });
      expect(refused.err).toStartWith(`the service at ${service.url} serves another log than `);
    }
    expect((await other.command("audit", "export", "--type", "RunStarted,DryRunFinished")).out).toBe("");
    expect(await own.command("ready", "--url", service.url)).toMatchObject({ code: 0 });
    expect(await own.command("outreach", "run", "--dry-run", "--url", service.url)).toMatchObject({ code: 0 });
    other.env["PORT"] = own.env["PORT"] ?? "";
    expect(await other.command("outreach", "run", "--dry-run")).toMatchObject({ code: 0, err: "" });
    const origin = (await other.command("audit", "verify")).out;
    const answers = await Promise.all(["/readyz", "/api/health"].map(async (path) => (await service.get(path)).text()));
    const [id = ""] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec((await other.command("audit", "prove", "1")).out + origin) ?? [];
    expect(id).toHaveLength(36);
    expect(answers.join()).not.toContain(id);
  },
);

test("ready reports whether the service at the configured address is ready", async () => {
  await using world = await openInstallation();
  world.env["PORT"] = String(await findFreePort("127.0.0.1"));
  const missing = await world.command("ready");
  expect(missing).toMatchObject({ code: 75, out: "", err: expect.stringContaining("no service answers at") });
  const service = await world.host();
  expect(await world.command("ready")).toEqual({ code: 0, out: "ready\n", err: "" });
  const checks = { running: true, log_writable: true, projections_caught_up: true };
  expect(JSON.parse((await world.command("ready", "--json")).out)).toEqual({ status: "ok", checks });
  using unready = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => Response.json({ status: "unavailable", checks: { ...checks, log_writable: false } }, { status: 503 }),
  });
  const refused = await world.command("ready", "--url", unready.url.origin);
  expect(refused).toEqual({ code: 75, out: "not ready: not log writable\n", err: "" });
  expect(await stop(service)).toBe(0);
});

test("deliveries test reports for each channel whether it delivers a test message", async () => {
  await using world = await openInstallation();
  const service = await world.host();
  world.env["REACHLOG_TOKEN"] = TOKEN;
  const all = await world.command("deliveries", "test", "--url", service.url);
  expect(all).toMatchObject({ code: 0, err: "" });
  expect(all.out).toMatch(/^chat +delivered$/m);
  const json = await world.command("deliveries", "test", "--json", "--url", service.url);
  expect(JSON.parse(json.out)).toMatchObject({ results: { ads: { ok: true, status: "delivered" } } });
});
