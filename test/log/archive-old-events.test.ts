// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { randomInt } from "node:crypto";
import { readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { maintainSqliteLog } from "eventstore-lite";
import { newDatabase } from "eventstore-lite/testing";
import { loadConfig } from "../../src/config/config.ts";
import { archiveEvents, startArchiver } from "../../src/log/archive-old-events.ts";
import { createEventLog, type NewEvent, STREAMS } from "../../src/log/event-log.ts";
import { createLogger } from "../../src/platform/logger.ts";
import { openLog } from "../../src/privacy/open-log.ts";
import { startService } from "../../src/service/service.ts";
import { openEncryptedLog } from "../../src/privacy/encrypted-log.ts";
import { keysIn } from "../../src/privacy/key-store.ts";
import { openKeyring } from "../../src/privacy/keyring.ts";
import { locateLog } from "../../src/privacy/locate-log.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { randomId, SILENT, toLogContext } from "../harness/in-process/temporary-log.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse("2026-03-10T12:00:00.000Z");

/** Length of a text that fills a good tenth of a segment, even compressed. */
const TEXT_CHARS = 150_000;
const OLD_EVENTS = 40;

const newText = (): string => Buffer.from(crypto.getRandomValues(new Uint8Array(TEXT_CHARS / 2))).toString("hex");

async function openAged(env: Record<string, string>, clock: () => number) {
  const log = await openLog(
    loadConfig(env, () => ""),
    { clock },
  );
  return { log, eventLog: createEventLog(log, () => Bun.randomUUIDv7()) };
}

/** Fills a log whose first forty events are from an earlier day than the last three. */
async function fillAged(env: Record<string, string>): Promise<void> {
  let now = NOW_MS - 3 * DAY_MS;
  const { log, eventLog } = await openAged(env, () => now);
  await using _ = log;
  const append = () => eventLog.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: newText() } }], {});
  for (let one = 0; one < OLD_EVENTS; one += 1) await append();
  now = NOW_MS;
  for (let one = 0; one < 3; one += 1) await append();
}

const archivedIn = async (log: Awaited<ReturnType<typeof openLog>>) => {
  const abort = new AbortController();
  for await (const event of log.subscribe({ from: 1, types: ["EventsArchived"], signal: abort.signal })) {
    abort.abort();
    return event;
  }
  return undefined;
};

const PLACES = [
  ["in a file", async (file: string) => ({ DATABASE_URL: `sqlite:${file}` })],
  ["on a server", async () => ({ DATABASE_URL: await newDatabase() })],
] as const;

describe.each(PLACES)("the archiver of a log %s", (_engine, make) => {
  test("archives and records whole segments of old events, and no younger ones", async () => {
    using folder = temporaryFolder();
    const segments = folder.file("segments");
    const env = {
      ...(await make(folder.file("log.sqlite"))),
      REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
      ARCHIVE_FOLDER: segments,
    };
    await fillAged(env);
    const { log, eventLog } = await openAged(env, () => NOW_MS);
    await using _ = log;
    const context = toLogContext(eventLog, { clock: () => NOW_MS });
    {
      await using young = startArchiver(context, 4);
      expect(young).toBeDefined();
    }
    expect(await log.archived()).toEqual([]);
    await using archiver = startArchiver(context, 2);
    expect(archiver).toBeDefined();
    const event = await archivedIn(log);
    const [segment, ...more] = await log.archived();
    expect(segment!.last).toBeLessThan(OLD_EVENTS);
    expect(more).toEqual([]);
    expect(readdirSync(segments)).toEqual([segment!.name]);
    expect(event).toMatchObject({
      position: OLD_EVENTS + 4,
      meta: { caller: "reachlog" },
      data: { position: segment!.last, events: segment!.last, segments: 1, bytes: segment!.bytes },
    });
    expect(await log.verify()).toMatchObject({ ok: true, checked: OLD_EVENTS + 4 });
  });
});

test("stopped archiving ends after the segment in progress and can be resumed", async () => {
  using folder = temporaryFolder();
  const env = {
    DATABASE_URL: `sqlite:${folder.file("log.sqlite")}`,
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  await fillAged(env);
  const { log, eventLog } = await openAged(env, () => NOW_MS);
  await using _ = log;
  const archive = (goesOn: boolean) => archiveEvents(eventLog, {}, { to: OLD_EVENTS }, async () => goesOn);
  const first = await archive(false);
  expect(first).toMatchObject({ segments: 1, events: first!.position });
  expect(first!.position).toBeLessThan(OLD_EVENTS);
  expect(await archive(true)).toMatchObject({ position: OLD_EVENTS, events: OLD_EVENTS - first!.position });
  expect(await archive(true)).toBeUndefined();
});

test("archiving 90 % of encrypted clicks shrinks the database to 12 %", async () => {
  using folder = temporaryFolder();
  const file = folder.file("log.sqlite");
  const env = { DATABASE_URL: `sqlite:${file}`, REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64") };
  const count = 30_000;
  {
    const { log, eventLog } = await openAged(env, Date.now);
    await using _ = log;
    const click = (one: number) => {
      const link = `l${one % 400}`;
      const ip = `203.0.${randomInt(256)}.${randomInt(256)}`;
      const clicked = clickOf({ short_code: link, channels: ["chat"], ip, user_agent: `Mozilla/5.0 (X11) ${one % 7}` });
      return eventLog.append(STREAMS.link("go.example", link), [clicked], { caller: "tester" });
    };
    for (let done = 0; done < count; done += 1_000)
      await Promise.all(Array.from({ length: 1_000 }, (_click, one) => click(one)));
  }
  maintainSqliteLog(file).compact("a test");
  const before = statSync(file).size;
  const bytes = async (): Promise<number> => {
    const { log } = await openAged(env, Date.now);
    await using _ = log;
    const segments = await Array.fromAsync(log.archive({ to: 0.9 * count }));
    return segments.reduce((sum, segment) => sum + segment.bytes, 0);
  };
  const archived = await bytes();
  maintainSqliteLog(file).compact("a test");
  const after = statSync(file).size;
  expect(after).toBeLessThanOrEqual(0.12 * before);
  expect(archived).toBeLessThanOrEqual(0.35 * (before - after));
});

test("a service archives only if ARCHIVE_AFTER_DAYS is set", async () => {
  using folder = temporaryFolder();
  const env = {
    PORT: "0",
    DATABASE_URL: `sqlite:${folder.file("log.sqlite")}`,
    REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
  };
  await fillAged(env);
  const logger = createLogger("error", () => {}, Date.now);
  const serve = (more: Record<string, string>) =>
    startService(
      loadConfig({ ...env, ...more }, () => ""),
      logger,
    );
  {
    await using service = await serve({});
    expect(service.url).toStartWith("http");
  }
  {
    await using service = await serve({ ARCHIVE_AFTER_DAYS: "1" });
    await service.projector.until(0);
    const { log } = await openAged(env, Date.now);
    await using _ = log;
    expect((await archivedIn(log))?.type).toBe("EventsArchived");
  }
  const { log } = await openAged(env, Date.now);
  await using _ = log;
  const recorded = await Array.fromAsync(log.read({ types: ["EventsArchived"] }));
  expect(recorded).toHaveLength(1);
  expect(await log.verify()).toMatchObject({ ok: true });
});

test.each(PLACES)(
  "a start with a log %s reads only the segments with erasures or key rotations",
  async (_engine, make) => {
    using folder = temporaryFolder();
    const segments = folder.file("segments");
    const env = {
      ...(await make(folder.file("log.sqlite"))),
      REACHLOG_KEY: Buffer.alloc(32, 7).toString("base64"),
      ARCHIVE_FOLDER: segments,
      PORT: "0",
    };
    const config = loadConfig(env, () => "");
    const rebuilt = { projection: "contacts", version: 1, position: 1 };
    const steps: readonly (readonly NewEvent[])[] = [
      [addedOf({ username: "ann" }), { type: "ProjectionRebuilt", data: rebuilt }],
      [{ type: "PersonForgotten", data: { hashes: [], keys: [] } }],
      [addedOf({ username: "bob" }), { type: "KeyRotated", data: { from: "one", to: "another" } }],
    ];
    for (const events of steps) {
      {
        const { log, eventLog } = await openAged(env, Date.now);
        await using _ = log;
        await eventLog.append(STREAMS.log, events, {});
        await eventLog.append(STREAMS.link("go.example", "x"), [clickOf()], {});
      }
      {
        // A service saves its states when it ends. So the next service folds no archived event.
        await using service = await startService(config, SILENT);
        expect(service.url).toStartWith("http");
      }
      const { log } = await openAged(env, Date.now);
      await using _ = log;
      await Array.fromAsync(log.archive({ to: Infinity }));
    }
    const names = readdirSync(segments).toSorted();
    expect(names).toHaveLength(steps.length);
    const move = (name: string, from: string, to: string): void =>
      renameSync(join(segments, name + from), join(segments, name + to));
    for (const name of names) move(name, "", ".away");
    expect(String(await startService(config, SILENT).catch((fault: unknown) => fault))).toContain(names[1]!);
    move(names[1]!, ".away", "");
    // No start has bound these keys to the log. They might be new and empty, and with them all personal data would look
    // erased, so the log must not open.
    const keysName = folder.file("new-keys.sqlite");
    await using secrets = await openSecretStore({ place: sqliteSecrets(keysName), master: Buffer.alloc(32, 9) });
    const opening = openEncryptedLog({
      place: locateLog(config).store,
      keysName,
      keyring: await openKeyring(keysIn(secrets), Date.now),
      areBoundTo: secrets.areBoundTo,
      bind: () => Promise.reject(new Error("it was bound")),
      makeId: randomId,
    });
    expect(String(await opening.catch((fault: unknown) => fault))).toContain(names[2]!);
    await using service = await startService(config, SILENT);
    expect(service.url).toStartWith("http");
    const { log } = await openAged(env, Date.now);
    await using _ = log;
    expect((await log.verify()).fault?.reason).toContain(names[0]);
  },
);
