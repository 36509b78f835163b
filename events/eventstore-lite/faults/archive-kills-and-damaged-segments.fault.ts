import { expect, test } from "bun:test";
import { type EventStore, openSqliteStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder } from "eventstore-lite/segments";
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newEvents, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { newDatabase } from "../src/testing/postgres-server.ts";
import { startProgram } from "./start-program.ts";
import { isWhole } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KILLS = isWhole ? 200 : 40;
const FLIPS = isWhole ? 500 : 100;
/**
 * Maximum time in ms from a program's first archived segment until this test kills it. The actual time is random, so
 * that the program dies at any step of archiving, which takes some milliseconds.
 */
const LIFE_MS_MAX = 40;

const openAt = (place: string, folder: string): Promise<EventStore> => {
  const segments = createSegmentFolder(folder);
  return place.startsWith("postgres:")
    ? openPostgresStore({ url: place, segments })
    : openSqliteStore({ file: place, segments });
};

test.each([
  ["a file", async () => newLogPath()],
  ["PostgreSQL", () => newDatabase()],
])(`a log in %s loses and doubles no event over ${KILLS} times kill -9 during archiving`, async (engine, make) => {
  const place = await make();
  const folder = `${newLogPath()}.segments`;
  const acknowledged = new Set<string>();
  const unrecorded = new Set<string>();
  let asked = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const program = startProgram("append-and-archive", {
      arguments: [place, folder, String(asked)],
      onLine(line) {
        const [word, key = ""] = line.split(" ");
        if (word === "?") asked = Math.max(asked, Number.parseInt(key.slice(1), 10) + 1);
        if (word === "+") acknowledged.add(key);
      },
    });
    await program.said((line) => line.startsWith("archived"));
    await Bun.sleep(Math.random() * LIFE_MS_MAX);
    await program.kill();

    await using store = await openAt(place, folder);
    const { position } = await store.head();
    expect(await store.verify()).toMatchObject({ ok: true, checked: position });
    const recorded = (await store.archived()).map(({ name }) => name);
    const files = readdirSync(folder).filter((name) => name.endsWith(".zst"));
    expect(recorded.filter((name) => !files.includes(name))).toEqual([]);
    for (const name of files) if (!recorded.includes(name)) unrecorded.add(name);
    // The archive uses segment files that were written before the kill but not recorded, and puts the remaining events
    // into new segments.
    expect((await take(store.archive({ to: position }))).at(-1)?.last).toBe(position - 1);
    const named = (await store.archived()).map(({ name }) => name);
    expect(readdirSync(folder).filter((name) => name.endsWith(".zst") && !named.includes(name))).toEqual([]);
  }
  await using store = await openAt(place, folder);
  const events = await take(store.readStored());
  expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
  const ids = new Set(events.map(({ id }) => id));
  expect(ids.size).toBe(events.length);
  expect([...acknowledged].filter((key) => !ids.has(`${key}.0`))).toEqual([]);
  console.log(
    `kill -9 while a log in ${engine} is archived ${KILLS}: events ${events.length}, lost 0, doubled 0, ` +
      `killed between a segment and its record ${unrecorded.size}`,
  );
  expect(unrecorded.size).toBeGreaterThan(0);
});

test(`verify names the archived segment of each of ${FLIPS} flipped bits, and each missing segment`, async () => {
  const [file, folder] = [newLogPath(), `${newLogPath()}.segments`];
  await using store = await openAt(file, folder);
  for (let segment = 0; segment < 5; segment += 1) {
    const { last } = await store.append(`s${segment % 2}`, newEvents(60));
    await store.append("s9", newEvents(1));
    await take(store.archive({ to: last }));
  }
  const { position } = await store.head();
  const names = readdirSync(folder);
  let named = 0;
  for (let flip = 0; flip < FLIPS; flip += 1) {
    const name = names[flip % names.length]!;
    const bytes = readFileSync(join(folder, name));
    const altered = Buffer.from(bytes);
    altered[randomInt(bytes.length)]! ^= 1 << randomInt(8);
    writeFileSync(join(folder, name), altered);
    const { fault } = await store.verify();
    if (fault?.reason.includes(name) === true) named += 1;
    writeFileSync(join(folder, name), bytes);
  }
  let missing = 0;
  for (const name of names) {
    renameSync(join(folder, name), join(folder, `${name}.away`));
    const { fault } = await store.verify();
    if (fault?.reason.includes(name) === true && fault.reason.includes("is missing")) missing += 1;
    renameSync(join(folder, `${name}.away`), join(folder, name));
  }
  console.log(`bits flipped in archived segments ${FLIPS}: named ${named}; missing ${names.length}: named ${missing}`);
  expect([named, missing]).toEqual([FLIPS, names.length]);
  expect(await store.verify()).toMatchObject({ ok: true, checked: position });
});
