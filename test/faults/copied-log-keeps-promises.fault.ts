import { expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "eventstore-lite/postgres";
import { startPostgres } from "eventstore-lite/testing";
import { CLICK } from "../harness/sample-click.ts";
import { ended, exported, openInstallation, stop, until, type Running } from "../harness/process.ts";
import { healthOf } from "./instances.ts";

const KEY = { REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };
const EXIT_BROKEN = 1;
const EXIT_BUSY = 75;
const EXIT_CONFIG = 78;

const clickOnce = ({ post }: Running) => post("/api/tracking/event", CLICK, { "idempotency-key": "once" });

/**
 * Copies a log on PostgreSQL in two ways. A service on the copy repeats its answer to a repeated request, posts no chat
 * message twice, reports an altered event, and refuses to start once the log's tables are gone.
 */
test.each(["a restored backup", "a template copy"] as const)(
  "on PostgreSQL, %s keeps the promises of the log",
  async (way) => {
    await using server = await startPostgres();
    await using world = await openInstallation();
    const { faults, slack } = world.sandbox;
    const elsewhere = await server.newDatabase();
    Object.assign(world.env, KEY, { DATABASE_URL: elsewhere });
    // Creates another log, at `elsewhere`, with its own keys of personal data, by an import of recipients.
    const people = world.file("people.csv", "username,basis\nada_builds,opt_in\n");
    expect(await world.execute("recipients", "import", people)).toMatchObject({ code: 0 });

    // Slack first answers 429, so the chat message of this click is pending when the copy is made. It arrives
    // afterwards.
    const url = await server.newDatabase();
    world.env["DATABASE_URL"] = url;
    faults.add({ network: "slack", kind: "429", retryAfter: 1 });
    const before = await world.serve();
    const first = await (await clickOnce(before)).json();
    expect(await stop(before)).toBe(0);
    const backup = join(world.directory, "backup");
    if (way === "a template copy") await server.ask(`CREATE DATABASE copy TEMPLATE ${new URL(url).pathname.slice(1)}`);
    else expect(await world.execute("backup", backup)).toMatchObject({ code: 0 });
    faults.clear();
    const original = await world.serve();
    await until(
      () => Promise.resolve(slack.messages.total),
      (total) => total === 1,
    );
    expect(await stop(original)).toBe(0);

    const place = way === "a template copy" ? server.url("copy") : await server.newDatabase();
    world.env["DATABASE_URL"] = place;
    if (way !== "a template copy") expect(await world.execute("restore", backup)).toMatchObject({ code: 0 });
    const foreign = await ended(world.start(["serve"], { KEYS_DATABASE_URL: elsewhere }));
    expect([foreign.code, foreign.err]).toEqual([EXIT_CONFIG, expect.stringContaining("belongs to the log")]);

    const service = await world.serve();
    expect(await (await clickOnce(service)).json()).toEqual(first);
    await until(
      () => healthOf(service),
      ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
    );
    const events = await exported(world);
    expect(events.filter(({ type }) => type === "LinkClicked")).toHaveLength(1);
    expect(events.filter(({ type }) => type === "LogRestored")).toHaveLength(1);
    expect(slack.messages.total).toBe(1);

    const refused = await world.execute("restored");
    expect([refused.code, refused.err]).toEqual([EXIT_BUSY, expect.stringContaining(`the service at ${service.url}`)]);

    await server.stop("fast");
    expect((await service.post("/api/tracking/event", CLICK)).status).toBe(503);
    await server.start();
    await until(
      () => service.get("/readyz"),
      ({ status }) => status === 200,
    );
    expect((await service.post("/api/tracking/event", CLICK)).status).toBe(202);
    expect(await stop(service)).toBe(0);

    const database = openDatabase({ url: place, connections: 1, name: "test" });
    await database.run((sql) => sql`ALTER TABLE eventstore.events DISABLE TRIGGER USER`);
    await database.run((sql) => sql`UPDATE eventstore.events SET stream = 'altered' WHERE position = 1`);
    const verified = await world.execute("audit", "verify");
    expect([verified.code, verified.out + verified.err]).toEqual([EXIT_BROKEN, expect.stringContaining("position 1")]);

    await database.run((sql) => sql`DROP SCHEMA eventstore CASCADE`);
    await database.close();
    const lost = await ended(world.start(["serve"]));
    expect([lost.code, lost.err]).toEqual([EXIT_CONFIG, expect.stringMatching(/is gone from .*reachlog restore/)]);
    console.log(`${way}: the key took effect once, 1 message in the chat, the alteration found, the lost log refused`);
  },
);
