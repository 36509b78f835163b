import { describe, expect, test } from "bun:test";
import { compactSqliteLog } from "../../src/sqlite/compact.ts";
import { type EventStore, openSqliteStore } from "eventstore-lite";
import { proveEvent, signCheckpoint, signingKeyOf, createLogTree, openProof } from "eventstore-lite/proof";
import { createSegmentFolder, SegmentDamaged, type SegmentStorage } from "eventstore-lite/segments";
import { StoreOwned } from "eventstore-lite/testing";
import { hash, randomInt } from "node:crypto";
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { newEvent, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { archiveTo, createPlaces, eventsOf } from "./archived-logs-by-engine.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();
const PLACES = createPlaces(newLogPath, { writerThread: false });

const STREAMS = 5;

async function fill(store: EventStore, count: number): Promise<void> {
  const appends = eventsOf(count).map((event, index) =>
    store.append(`s${index % STREAMS}`, [event], { key: `k${index}`, digest: "d" }),
  );
  await Promise.all(appends);
}

/** Returns all that a log holds, in every way of reading it. */
async function readAll(store: EventStore) {
  const { position } = await store.head();
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
  return {
    head: await store.head(),
    events: await take(store.readStored()),
    backwards: await take(store.read({ backwards: true, limit: 50 })),
    folded: (await take(store.readFolded({ types: ["T1"] }))).flat().map(({ position: at, data }) => [at, data]),
    canonical: (await take(store.readCanonical({ from: 1, to: position }))).flat().map(text),
    keys: (await take(store.readKeys({ from: 1, to: position })))
      .flat()
      .toSorted((one, other) => one.first - other.first),
    streams: await Promise.all([0, 1, 2, 3, 4].map((one) => store.streamHead(`s${one}`))),
    hashes: await Promise.all(Array.from({ length: position + 2 }, (_, at) => store.hashAt(at))),
  };
}

async function backupOf(store: EventStore): Promise<string> {
  const file = newLogPath();
  await store.backup(file);
  return file;
}

/** Returns the bytes of memory that buffers hold after a garbage collection. */
function heldBytes(): number {
  Bun.gc(true);
  return process.memoryUsage().arrayBuffers;
}

/** Decompressed content of a damaged segment: more bytes than a segment of the archive may hold. */
const INFLATED = Buffer.alloc(1 << 28);

const filesIn = (folder: string): string[] => readdirSync(folder).toSorted();

/** Returns SQL that makes the database claim that a segment holds a range of events. */
const claimSegment = (first: number, last: number): string =>
  `INSERT INTO segments (first, last, name, bytes, sha256, hash, first_time, last_time, types)
   VALUES (${first}, ${last}, 'none', 1, '', coalesce((SELECT hash FROM events WHERE position = ${last}), x''), 0, 0, '{}')`;

describe.each(PLACES)("on %s", (engine, makePlace) => {
  test("an archived log reads the same in every way, even after a restart", async () => {
    const place = await makePlace();
    let before: Awaited<ReturnType<typeof readAll>>;
    {
      await using store = await place.open();
      await fill(store, 100);
      before = await readAll(store);
      await archiveTo(store, 30);
      await archiveTo(store, 90);
      expect(await readAll(store)).toEqual(before);
      expect((await store.archived()).map(({ first, last }) => [first, last])).toEqual([
        [1, 30],
        [31, 90],
      ]);
    }
    await using store = await place.open();
    expect(await readAll(store)).toEqual(before);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 100 });
    await using without = await place.open(createSegmentFolder(newLogPath()));
    expect((await take(without.read({ from: 91 }))).length).toBe(10);
    expect(await refusalOf(take(without.read()))).toBeInstanceOf(SegmentDamaged);
  });

  test("archiving never moves the newest event and moves no event twice", async () => {
    const place = await makePlace();
    await using store = await place.open();
    expect(await archiveTo(store, Infinity)).toEqual([]);
    await fill(store, 10);
    expect(await archiveTo(store, Infinity)).toMatchObject([{ first: 1, last: 9 }]);
    expect(await archiveTo(store, Infinity)).toEqual([]);
    await store.append("s0", [newEvent()]);
    expect(await archiveTo(store, Infinity)).toMatchObject([{ first: 10, last: 10 }]);
    const full = await take(store.archive({ to: Infinity, fullOnly: true }));
    expect(full).toEqual([]);
  });

  test("a fully archived stream continues and still knows its idempotency keys", async () => {
    const place = await makePlace();
    {
      await using store = await place.open();
      await store.append("old", eventsOf(3), { key: "k", digest: "asked" });
      await store.append("new", eventsOf(1));
      await archiveTo(store, 3);
    }
    await using store = await place.open();
    expect(await store.streamHead("old")).toEqual({ version: 3, position: 3 });
    expect(await store.append("old", eventsOf(3), { key: "k", digest: "asked" })).toEqual({
      first: 1,
      last: 3,
      version: 3,
      repeated: true,
    });
    expect(await refusalOf(store.append("old", eventsOf(1), { expected: 0 }))).toMatchObject({ actual: 3 });
    expect(await store.append("old", eventsOf(1), { expected: 3 })).toMatchObject({ first: 5, version: 4 });
    expect((await take(store.read({ stream: "old" }))).map(({ version }) => version)).toEqual([1, 2, 3, 4]);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 5 });
  });

  test("proofs are the same before and after archiving", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 600);
    const key = signingKeyOf(Buffer.alloc(32, 7));
    const { position, hash } = await store.head();
    const root = Buffer.from(await createLogTree(store).at(position).root()).toString("hex");
    const note = signCheckpoint({ origin: "a/log", position, hash, root, time: undefined }, key);
    const prove = () => Promise.all([1, 255, 256, 257, 600].map((at) => proveEvent(store, at, note, key.publicKey)));
    const before = await prove();
    await createLogTree(store).extend(position);
    await archiveTo(store, 555);
    expect(await prove()).toEqual(before);
    await createLogTree(store).forget();
    expect(await prove()).toEqual(before);
    expect(openProof(before[1]!, key.publicKey).position).toBe(255);
  });

  test("a reader in progress loses no event during archiving, in either direction", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 3_000);
    for (const query of [{}, { backwards: true }, { types: ["T1"] }, { stream: "s3", backwards: true }]) {
      const wanted = (await take(store.readStored(query))).map(({ position }) => position);
      const seen: number[] = [];
      const end = (await store.archived()).at(-1)?.last ?? 0;
      for await (const { position } of store.readStored(query)) {
        seen.push(position);
        if (seen.length % 40 === 0) await archiveTo(store, Math.min(end + seen.length, end + 700));
      }
      expect(seen).toEqual(wanted);
    }
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3_000 });
  });

  test("a verification during archiving finds the log intact", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 8_000);
    let archiving: Promise<unknown> | undefined;
    // Moves events into the archive while the verification runs, so that the sums that it computes over rows and over
    // indexes differ at first.
    const onProgress = () => void (archiving ??= archiveTo(store, 100));
    expect(await store.verify({ onProgress })).toMatchObject({ ok: true, checked: 8_000 });
    await archiving;
    expect(await store.verify()).toMatchObject({ ok: true, checked: 8_000 });
  });

  test("a subscription that begins in the archive continues to new events", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 50);
    await archiveTo(store, 40);
    const abort = new AbortController();
    const seen: number[] = [];
    for await (const { position } of store.subscribe({ from: 5, signal: abort.signal })) {
      seen.push(position);
      if (position === 45) await store.append("s0", eventsOf(2));
      if (position === 52) abort.abort();
    }
    expect(seen).toEqual(Array.from({ length: 48 }, (_, index) => index + 5));
  });

  test("a backup holds all events in one file and is archived into the same segments", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 200);
    await archiveTo(store, 150);
    const before = await readAll(store);
    const copy = newLogPath();
    expect(await store.backup(copy)).toMatchObject({ head: before.head });
    await using restored = await openSqliteStore({ file: copy, segments: createSegmentFolder(place.folder) });
    expect(restored.id).toBe(store.id);
    expect(await restored.archived()).toEqual([]);
    expect(await readAll(restored)).toEqual(before);
    const files = filesIn(place.folder);
    await archiveTo(restored, 150);
    expect(filesIn(place.folder)).toEqual(files);
    expect(await readAll(restored)).toEqual(before);
  });

  test("a failing segment storage removes nothing from the log, and the next call completes", async () => {
    const place = await makePlace();
    const folder = createSegmentFolder(place.folder);
    const fail = async (): Promise<never> => {
      throw new Error("the place is out of reach");
    };
    const losing: SegmentStorage = { ...folder, write: async () => {} };
    const altering: SegmentStorage = {
      ...folder,
      async read(name) {
        const bytes = await folder.read(name);
        if (bytes !== undefined) bytes[bytes.length >> 1]! ^= 1;
        return bytes;
      },
    };
    {
      await using store = await place.open();
      await fill(store, 60);
    }
    for (const segments of [{ ...folder, write: fail }, losing, altering]) {
      await using store = await place.open(segments);
      expect(await refusalOf(archiveTo(store, 50))).toBeInstanceOf(Error);
      expect(await store.archived()).toEqual([]);
      expect(await take(store.read())).toHaveLength(60);
    }
    await using store = await place.open();
    expect(await archiveTo(store, 50)).toMatchObject([{ first: 1, last: 50 }]);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 60 });
  });

  test("two concurrent archivers archive each event once", async () => {
    const place = await makePlace();
    await using one = await place.open();
    await using other = await place.open();
    await fill(one, 400);
    const before = await readAll(one);
    await Promise.all([300, 200, 350].map((to, index) => archiveTo(index === 1 ? other : one, to).catch(() => [])));
    await archiveTo(other, 380);
    expect(await readAll(one)).toEqual(before);
    expect(await readAll(other)).toEqual(before);
    expect(await other.verify()).toMatchObject({ ok: true, checked: 400 });
  });

  test("a damaged or missing segment is named, and reads of other segments continue", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 90);
    for (const to of [30, 60, 80]) await archiveTo(store, to);
    const files = filesIn(place.folder);
    for (let flip = 0; flip < 30; flip += 1) {
      const name = files[flip % files.length]!;
      const file = join(place.folder, name);
      const bytes = readFileSync(file);
      const altered = Buffer.from(bytes);
      altered[randomInt(bytes.length)]! ^= 1 << randomInt(8);
      writeFileSync(file, altered);
      const { ok, fault } = await store.verify();
      expect([ok, fault?.reason]).toEqual([false, expect.stringContaining(name)]);
      writeFileSync(file, bytes);
    }
    const [, second] = files;
    const bytes = readFileSync(join(place.folder, second!));
    rmSync(join(place.folder, second!));
    await using reader = await place.open();
    expect(await reader.verify()).toMatchObject({ ok: false, checked: 30, fault: { position: 31 } });
    expect((await reader.verify()).fault?.reason).toContain(`${second} of positions 31 to 60: it is missing`);
    expect(await refusalOf(take(reader.read({ from: 40, to: 41 })))).toMatchObject({
      message: expect.stringContaining(second!),
    });
    expect(await take(reader.read({ from: 1, to: 30 }))).toHaveLength(30);
    expect(await take(reader.read({ from: 61 }))).toHaveLength(30);
    expect(await reader.append("s0", eventsOf(1))).toMatchObject({ first: 91, version: 19 });
    writeFileSync(join(place.folder, second!), bytes);
    expect(await reader.verify()).toMatchObject({ ok: true, checked: 91 });
    expect(await take(reader.read({ from: 40, to: 41 }))).toHaveLength(2);
  });

  test("an intact segment with other bytes than the sealed one is refused", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 60);
    await archiveTo(store, 20);
    await archiveTo(store, 40);
    const [first, second] = filesIn(place.folder).map((name) => join(place.folder, name));
    const bytes = readFileSync(first!);
    writeFileSync(
      first!,
      zstdCompressSync(zstdDecompressSync(bytes), { params: { [constants.ZSTD_c_compressionLevel]: 1 } }),
    );
    expect((await store.verify()).fault?.reason).toContain("its bytes are not those that were sealed");
    writeFileSync(first!, readFileSync(second!));
    await using reader = await place.open();
    expect(String(await refusalOf(take(reader.read({ to: 5 }))))).toContain("its bytes are not those that were sealed");
    writeFileSync(first!, bytes);
    expect(await store.verify()).toMatchObject({ ok: true });
  });

  test("an altered, malformed or inflated segment is named and refused before it is decompressed", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 60);
    await archiveTo(store, 20);
    await archiveTo(store, 40);
    const [first] = filesIn(place.folder);
    const file = join(place.folder, first!);
    const bytes = readFileSync(file);
    const text = zstdDecompressSync(bytes).toString("utf8");
    for (const [what, changed] of [
      ["an event", text.replace('"index":3,', '"index":4,')],
      ["a key", text.replace(/\n\["k3".*\n/, "\n[\n")],
      ["the header", text.replace('"keys":20', '"keys":"all"')],
      ["gibberish", "{"],
      ["zeroes", Buffer.alloc(1 << 28)],
    ] as const) {
      expect([what, changed === text]).toEqual([what, false]);
      writeFileSync(file, zstdCompressSync(changed));
      await using reader = await place.open();
      for (const reading of [
        () => take(reader.read({ to: 5 })),
        () => take(reader.readFolded({ types: ["T1"] })),
        () => take(reader.readCanonical({ from: 3, to: 4 })),
        () => take(reader.readKeys({ from: 1, to: 60 })),
        () => reader.hashAt(3),
        // The append repeats an archived key, so it waits until the segment's file is read. The segment is damaged, so
        // the append fails; its cause is the error to compare.
        () => reader.append("s3", eventsOf(1), { key: "k3", digest: "d" }).catch(({ cause }) => Promise.reject(cause)),
      ]) {
        const refusal = await refusalOf(reading());
        expect([what, refusal]).toEqual([what, expect.any(SegmentDamaged)]);
        expect(String(refusal)).toContain(`${first!} of positions 1 to 20: its bytes are not those that were sealed`);
      }
      expect((await reader.verify()).fault?.reason).toContain(
        `${first!} of positions 1 to 20: its bytes are not those`,
      );
      expect(await take(reader.read({ from: 21 }))).toHaveLength(40);
      expect(await take(reader.read({ backwards: true, limit: 40 }))).toHaveLength(40);
    }
    writeFileSync(file, bytes);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 60 });
  });

  test("a malformed segment with a matching checksum is named and refused", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 30);
    await archiveTo(store, 20);
    const [name] = filesIn(place.folder);
    const file = join(place.folder, name!);
    const text = zstdDecompressSync(readFileSync(file)).toString("utf8");
    for (const changed of [
      text.replace(/"hash":"\w+"/, `"hash":"${"11".repeat(32)}"`),
      text.replace('"first":1,"last":20', '"first":2,"last":20').replace(/^(.*\n)(.*\n){8}/, "$1"),
      text.replace('"last":20', '"last":19').replace('"keys":20', '"keys":0'),
      text.replace(/\n\["k3".*\n/, "\n[\n"),
      text.replace(/\n\["k3".*\n/, "\nnull\n"),
      text.replace('"keys":20', '"keys":1e300'),
      text.replace('"last":20', '"last":1e300'),
      text.replace(/"before":"\w+"/, '"before":null'),
      "null\n",
      INFLATED,
    ]) {
      const bytes = zstdCompressSync(changed);
      writeFileSync(file, bytes);
      const sha256 = hash("sha256", bytes);
      await place.withoutTriggers(`UPDATE segments SET sha256 = '${sha256}', bytes = ${bytes.length}`);
      await using reader = await place.open();
      const refusal = await refusalOf(take(reader.read({ to: 5 })));
      expect(refusal).toBeInstanceOf(SegmentDamaged);
      expect(String(refusal)).toContain(`the segment ${name!} of positions 1 to 20: `);
      if (changed === INFLATED) expect(String(refusal)).toContain("it decompresses to more than a segment holds");
      expect((await reader.verify()).fault?.reason).toContain(`the segment ${name!} of positions 1 to 20: `);
      expect(await take(reader.read({ from: 21 }))).toHaveLength(10);
    }
  });

  test("an unreadable archived event is refused with its segment, after the events before it", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 30);
    await archiveTo(store, 20);
    const [name] = filesIn(place.folder);
    const file = join(place.folder, name!);
    const text = zstdDecompressSync(readFileSync(file)).toString("utf8");
    for (const [what, line] of [
      ["data", 6],
      ["metadata", 7],
      ["time", 5],
    ] as const) {
      const lines = text.split("\n");
      // The first line is the header; eight lines for each event follow it. This changes a line of the fourth event.
      lines[1 + 3 * 8 + line] = "{no JSON";
      const bytes = zstdCompressSync(lines.join("\n"));
      writeFileSync(file, bytes);
      await place.withoutTriggers(`UPDATE segments SET sha256 = '${hash("sha256", bytes)}', bytes = ${bytes.length}`);
      await using reader = await place.open();
      const given: number[] = [];
      const ways: readonly (readonly [string, () => Promise<unknown>])[] = [
        ["read", () => take(reader.read())],
        ["readStored", () => take(reader.readStored({ from: 4, limit: 1 }))],
        // Malformed metadata does not fail a read for folds, which parses no event's metadata.
        ...(what === "metadata" ? [] : ([["readFolded", () => take(reader.readFolded())]] as const)),
        [
          "one by one",
          async () => {
            for await (const { position } of reader.read()) given.push(position);
          },
        ],
      ];
      for (const [way, read] of ways) {
        const refusal = await refusalOf(read());
        expect([what, way, refusal]).toEqual([what, way, expect.any(SegmentDamaged)]);
        expect(String(refusal)).toContain(`the segment ${name!} of positions 1 to 20: its event 4 cannot be read`);
      }
      expect(given).toEqual([1, 2, 3]);
      expect(await take(reader.read({ from: 5 }))).toHaveLength(26);
    }
  });

  test("existing segment files with the same events are reused, and others are left alone", async () => {
    const place = await makePlace();
    const folder = createSegmentFolder(place.folder);
    await using store = await place.open();
    await fill(store, 100);
    const copy = await backupOf(store);
    {
      // Another copy of the log has the same beginning in other segments, and continues differently.
      await using other = await openSqliteStore({ file: copy, segments: folder });
      await archiveTo(other, 30);
      await archiveTo(other, 95);
      await other.append("s0", eventsOf(20));
      await archiveTo(other, 119);
    }
    await store.append("s0", eventsOf(40));
    const before = await readAll(store);
    const files = filesIn(place.folder);
    expect(files).toHaveLength(3);
    expect(await archiveTo(store, 20)).toMatchObject([{ first: 1, last: 20 }]);
    await using restored = await openSqliteStore({ file: await backupOf(store), segments: folder });
    const ranges = (await archiveTo(restored, 130)).map(({ first, last }) => [first, last]);
    expect(ranges).toEqual([
      [1, 30],
      [31, 95],
      [96, 130],
    ]);
    expect((await readAll(restored)).events).toEqual(before.events);
    expect((await restored.archived()).map(({ name }) => name).slice(0, 2)).toEqual(files.slice(0, 2));
    expect(filesIn(place.folder)).toEqual(expect.arrayContaining(files));
    expect(await restored.verify()).toMatchObject({ ok: true, checked: 140 });
  });

  test("a file with a segment's name and other events is refused, and nothing leaves the log", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await fill(store, 60);
    const copy = newLogPath();
    await store.backup(copy);
    await archiveTo(store, 50);
    const [name] = filesIn(place.folder);
    const other = createSegmentFolder(newLogPath());
    await using shorter = await openSqliteStore({ file: copy, segments: other });
    await archiveTo(shorter, 10);
    const [ten] = await other.list();
    const fresh = newLogPath();
    await store.backup(fresh);
    const misled = createSegmentFolder(newLogPath());
    await misled.write(name!, (await other.read(ten!))!);
    await using victim = await openSqliteStore({ file: fresh, segments: misled });
    expect(String(await refusalOf(archiveTo(victim, 50)))).toContain(`${name}: it holds other events`);
    expect(await victim.archived()).toEqual([]);
    expect(await take(victim.read())).toHaveLength(60);
  });

  test("the database's records of segments and archived streams are append-only and verified", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await store.append("early", eventsOf(1));
    await fill(store, 50);
    await archiveTo(store, 20);
    await archiveTo(store, 40);
    for (const change of [
      "DELETE FROM segments",
      "UPDATE segments SET last = 39 WHERE last = 40",
      "DELETE FROM archived_streams",
      "UPDATE archived_streams SET version = 1",
      "DELETE FROM events WHERE position > 40",
    ]) {
      expect(String(await refusalOf(place.change(change)))).toContain("append-only");
    }
    expect(await store.verify()).toMatchObject({ ok: true, checked: 51 });
    if (engine === "SQLite") {
      // Only SQLite protects these tables with triggers. On PostgreSQL, the rights of the database's roles protect
      // them.
      for (const [first, last] of [
        [41, 51],
        [42, 45],
        [41, 60],
      ])
        expect(String(await refusalOf(place.change(claimSegment(first!, last!))))).toContain(
          "the next events of the log",
        );
    }
    const early = engine === "SQLite" ? "(SELECT id FROM streams WHERE name = 'early')" : "'early'";
    for (const [change, undo] of [
      // All events of this stream are archived.
      [
        "DELETE FROM archived_streams WHERE position = 1",
        `INSERT INTO archived_streams (stream, position, version) VALUES (${early}, 1, 1)`,
      ],
      [
        "UPDATE archived_streams SET version = version - 1 WHERE position = 38",
        "UPDATE archived_streams SET version = version + 1 WHERE position = 38",
      ],
      ["UPDATE segments SET last_time = last_time + 1", "UPDATE segments SET last_time = last_time - 1"],
      ["UPDATE segments SET first_time = first_time - 1", "UPDATE segments SET first_time = first_time + 1"],
      ["UPDATE segments SET keys_from = keys_from + 1", "UPDATE segments SET keys_from = keys_from - 1"],
      ["UPDATE segments SET bytes = bytes + 1", "UPDATE segments SET bytes = bytes - 1"],
      ["UPDATE segments SET sha256 = sha256 || '0'", "UPDATE segments SET sha256 = substr(sha256, 1, 64)"],
      [
        "UPDATE segments SET types = replace(types, 'T1', 'T9')",
        "UPDATE segments SET types = replace(types, 'T9', 'T1')",
      ],
      // This row of `archived_streams` is not the newest one of its stream, so `verify` does not compare its values,
      // and only notices that it is missing.
      ["DELETE FROM archived_streams WHERE position = 18", undefined],
    ] as const) {
      await place.withoutTriggers(change);
      await using later = await place.open();
      expect([change, (await later.verify()).ok]).toEqual([change, false]);
      if (undo === undefined) continue;
      await place.withoutTriggers(undo);
      await using whole = await place.open();
      expect([undo, (await whole.verify()).ok]).toEqual([undo, true]);
    }
  });
});

test("compaction shrinks the file and is refused while the log has an owner", async () => {
  const file = newLogPath();
  const segments = createSegmentFolder(`${file}.segments`);
  {
    await using store = await openSqliteStore({ file, segments, owner: true });
    for (let at = 0; at < 20; at += 1) await store.append("a", eventsOf(500, 600));
    await archiveTo(store, 9_000);
    expect(() => compactSqliteLog({ file, holder: "a test" })).toThrow(StoreOwned);
  }
  const before = statSync(file).size;
  compactSqliteLog({ file, holder: "a test" });
  expect(statSync(file).size).toBeLessThanOrEqual(0.12 * before);
  await using store = await openSqliteStore({ file, segments });
  expect(await store.verify()).toMatchObject({ ok: true, checked: 10_000 });
  expect((await store.archived()).length).toBeGreaterThan(1);
});

test("paused readers keep few segments in memory and can continue", async () => {
  const file = newLogPath();
  const open = () => openSqliteStore({ file, segments: createSegmentFolder(`${file}.segments`) });
  const [segments, count] = [24, 1_000];
  const before = heldBytes();
  {
    await using store = await open();
    for (let one = 1; one <= segments; one += 1) {
      await store.append("a", eventsOf(count, 500));
      await archiveTo(store, one * count - 1);
    }
  }
  await using store = await open();
  const starts = Array.from({ length: segments - 1 }, (_, one) => one * count + 1);
  const kinds: readonly (readonly AsyncIterable<readonly unknown[]>[])[] = [
    starts.map((from) => store.readFolded({ from, limit: count })),
    starts.map((from) => store.readFolded({ to: from + count, backwards: true, limit: count })),
    starts.map((from) => store.readCanonical({ from, to: from + count - 1 })),
  ];
  for (const readers of kinds) {
    const firsts = await Promise.all(readers.map((reader) => reader[Symbol.asyncIterator]().next()));
    // Each segment has a megabyte, and each of the two stores may keep eight open.
    expect(heldBytes() - before).toBeLessThan(21 * 1024 * 1024);
    for (const [index, reader] of readers.entries()) {
      const rest = (await take(reader)).flat();
      expect((firsts[index]!.value as readonly unknown[]).length + rest.length).toBe(
        Math.min(count, starts[index]! + count),
      );
    }
  }
});
