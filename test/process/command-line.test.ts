// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { settingsOf } from "../../sandbox/service-settings.ts";
import { authorize, BEARER, exported, openInstallation, TOKEN, stop } from "../harness/process.ts";

test("every command shows its help, and an unknown option or command is a usage error", async () => {
  await using world = await openInstallation();
  const overview = await world.execute("--help");
  expect(overview.code).toBe(0);
  for (const name of [
    "serve",
    "demo",
    "sandbox",
    "doctor",
    "recipients",
    "stats",
    "replay",
    "audit",
    "backup",
    "deliveries",
    "outreach",
    "account",
  ]) {
    expect(overview.out).toContain(`  ${name} `);
    const help = await world.command(name, "--help");
    expect([help.code, help.out.startsWith(`Usage: reachlog ${name}`)]).toEqual([0, true]);
    expect(await world.command(name, "--no-such-option")).toMatchObject({ code: 2 });
  }
  expect(await world.execute("no-such-command")).toMatchObject({ code: 2 });
});

test("serve reports all faults of the configuration together, without the values of secrets", async () => {
  await using world = await openInstallation();
  Object.assign(world.env, { DAILY_LIMIT: "101", QUOTA_TIMEZONE: "Mars/Olympus", API_TOKENS: "name:short-secret" });
  const { code, err } = await world.execute("serve");
  expect(code).toBe(78);
  for (const variable of ["DAILY_LIMIT", "QUOTA_TIMEZONE", "API_TOKENS"]) expect(err).toContain(variable);
  expect(err).not.toContain("short-secret");
});

test("serve refuses a file that is no log, and leaves it unchanged", async () => {
  await using world = await openInstallation();
  const file = world.file("reachlog.sqlite", "this is a letter, not a database. ".repeat(100));
  const { code, err } = await world.execute("serve");
  expect(code).toBe(78);
  expect(err).toContain(file);
  expect(err).not.toMatch(/^\s+at /m);
  expect(readFileSync(file, "utf8")).toStartWith("this is a letter");
});

test("a second service on the same log exits with 75 and names the first", async () => {
  await using world = await openInstallation();
  const first = await world.serve();
  const second = await world.execute("serve");
  expect(second.code).toBe(75);
  expect(second.err).toContain(`pid ${first.process.pid}`);
  expect((await first.get("/api/health")).status).toBe(200);
});

test("after SIGTERM the service answers requests in flight and exits with 0", async () => {
  await using world = await openInstallation();
  world.sandbox.faults.add({ network: "telegram", kind: "429", retryAfter: 60 });
  const service = await world.serve();
  const inFlight = service.post("/api/messaging", { text: "x" }, BEARER);
  while ((await exported(world)).every(({ type }) => type !== "MessageRequested")) await Bun.sleep(10);
  service.process.kill("SIGTERM");
  expect((await inFlight).status).toBe(202);
  expect(await service.process.exited).toBe(0);
});

test("replay finds no difference in any projection, and stats --as-of counts an earlier moment", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  await world.command(
    "recipients",
    "import",
    world.file("p.csv", "username,basis\nada_builds,opt_in\ngrace_codes,opt_in\nclosed_carl,opt_in\n"),
  );
  const service = await world.host();
  await authorize(service, world.sandbox);
  await service.post("/social/run", undefined, { prefer: "wait=300" });
  await stop(service);

  const replayed = await world.command("replay", "--json");
  expect(replayed.code).toBe(0);
  const reports = replayed.out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { projection: string; differences: unknown });
  expect(reports.map(({ projection }) => projection).sort()).toEqual([
    "account",
    "backups",
    "campaigns",
    "clicks",
    "contacts",
    "conversions",
    "deliveries",
    "inbox",
    "links",
    "news",
    "quota",
    "referrers",
    "restores",
    "results",
    "run",
    "runs",
    "signals",
    "sources",
    "stats",
    "suspected",
    "timeline",
    "tokens",
    "visits",
  ]);
  for (const { differences } of reports) expect(differences).toEqual([]);

  const sent = (await exported(world)).filter(({ type }) => type === "DirectMessageSent");
  expect(sent).toHaveLength(2);
  const asOf = async (moment: string) => JSON.parse((await world.command("stats", "--json", "--as-of", moment)).out);
  const position = sent[0]?.position ?? 0;
  expect(await asOf(String(position))).toMatchObject({ sent: 1, as_of: { position } });
  expect(await asOf(String(position - 1))).toMatchObject({ sent: 0 });
  expect(await asOf("2001-01-01T00:00:00Z")).toMatchObject({ sent: 0, skipped: 0, as_of: { position: 0 } });
  expect(JSON.parse((await world.command("stats", "--json")).out)).toMatchObject({ sent: 2, skipped: 1, failed: 0 });
});

test("account unlink revokes the grant at the network, and another account may authorize", async () => {
  await using world = await openInstallation();
  const service = await world.host();
  expect((await world.command("account", "show")).out).toStartWith("no account is linked (as of position ");
  await authorize(service, world.sandbox);
  expect((await world.command("account", "show")).out).toStartWith("@acme_team (Acme Team, ");
  const token = [...world.sandbox.x.access.keys()][0] ?? "";
  const unlinked = await world.command("account", "unlink", "--json");
  expect([unlinked.code, JSON.parse(unlinked.out)]).toEqual([0, { unlinked: true, revoked: true }]);
  const me = await fetch(`${world.env["X_API_URL"]}/2/users/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(me.status).toBe(401);
  expect((await authorize(service, world.sandbox, "someone_else")).answer.status).toBe(200);
});

test("audit export writes each format, and does not overwrite a file", async () => {
  await using world = await openInstallation();
  const csv = 'username,name,basis\nada_builds,"=HYPERLINK(""http://evil"")",opt_in\n';
  await world.command("recipients", "import", world.file("p.csv", csv));
  const [line] = (await world.command("audit", "export")).out.split("\n");
  expect(Object.keys(JSON.parse(line ?? ""))).toEqual([
    "position",
    "id",
    "stream",
    "version",
    "type",
    "time",
    "data",
    "meta",
    "hash",
    "stored",
  ]);
  expect((await world.execute("audit", "export", "--format", "csv")).out).toStartWith(
    "position,id,stream,version,type,time,data,meta,hash,stored\r\n",
  );
  const cloud = JSON.parse((await world.command("audit", "export", "--format", "cloudevents")).out);
  expect(cloud).toMatchObject({ specversion: "1.0", type: "reachlog.RecipientAdded", subject: "outreach" });
  const out = join(world.directory, "export.jsonl");
  expect(await world.command("audit", "export", "--out", out)).toMatchObject({ code: 0, out: "" });
  expect(readFileSync(out, "utf8")).toBe(`${line}\n`);
  expect(await world.command("audit", "export", "--out", out)).toMatchObject({ code: 1 });
});

test("audit verify finds an altered event", async () => {
  await using world = await openInstallation();
  await world.command(
    "recipients",
    "import",
    world.file("p.csv", "username,basis\nada_builds,opt_in\ngrace_codes,none\n"),
  );
  expect(await world.command("audit", "verify")).toMatchObject({ code: 0 });
  const { DatabaseSync } = await import("node:sqlite");
  const raw = new DatabaseSync(join(world.directory, "reachlog.sqlite"));
  for (const { name } of raw.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all())
    raw.exec(`DROP TRIGGER "${String(name)}"`);
  raw.exec(`UPDATE events SET data = replace(data, '"none"', '"opt_in"') WHERE position = 2`);
  raw.close();
  const broken = await world.command("audit", "verify");
  expect([broken.code, broken.out]).toEqual([1, expect.stringContaining("position 2")]);
});

test.each([
  ["discord", "line"],
  ["google_chat", "whatsapp"],
  ["teams", "telegram"],
] as const)("doctor checks %s and %s without a message, and reports a revoked credential", async (chat, messaging) => {
  await using world = await openInstallation();
  Object.assign(world.env, settingsOf(world.sandbox, { chat, messaging }));
  const well = await world.command("doctor", "--online");
  expect(well.out).toContain(`ok      chat (${chat})`);
  expect(well.out).toContain(`ok      messaging (${messaging})`);
  const arrivals = [world.sandbox.discord, world.sandbox.googleChat, world.sandbox.teams, world.sandbox.line];
  for (const { messages } of [...arrivals, world.sandbox.whatsapp]) expect(messages.total).toBe(0);
  world.sandbox.faults.add({ network: messaging, kind: "token_revoked" });
  const ill = await world.command("doctor", "--online");
  expect(ill.code).toBe(1);
  expect(ill.out).toContain(`WRONG   messaging (${messaging})`);
});

test.each(["sandbox", "demo"])("%s rejects an unknown network and names the choices", async (command) => {
  await using world = await openInstallation();
  for (const [option, wrong, names] of [
    ["--chat", "icq", "slack, discord, google_chat, teams"],
    ["--messaging", "slack", "telegram, line, whatsapp"],
  ] as const) {
    const { code, err } = await world.command(command, option, wrong);
    expect([code, err]).toEqual([2, expect.stringContaining(`Allowed choices are ${names}.`)]);
  }
});

test("doctor passes, and reports a wrong key and a dead webhook", async () => {
  await using world = await openInstallation();
  const service = await world.host();
  await stop(service);
  const well = await world.command("doctor", "--online");
  expect(well.code).toBe(0);
  expect(well.out).toContain("ok      chat (slack)");
  world.sandbox.faults.add({ network: "slack", kind: "channel_archived", count: 1 });
  Object.assign(world.env, { REACHLOG_KEY: "00".repeat(32) });
  const ill = await world.command("doctor", "--online");
  expect(ill.code).toBe(1);
  expect(ill.out).toContain("WRONG   vault");
  expect(ill.out).toContain("WRONG   chat (slack)");
  expect(ill.out).not.toContain(TOKEN);
});
