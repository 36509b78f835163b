import { describe, expect, test } from "bun:test";
import { createSegmentFolder, type SegmentStorage } from "eventstore-lite/segments";
import { KeyReused, StoreUnavailable } from "eventstore-lite/testing";
import { createHash } from "node:crypto";
import { readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { newEvent, newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { archiveTo, createPlaces } from "./archived-logs-by-engine.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const PLACES = createPlaces(temporaryLogs());

/** SQL that makes the database claim that a segment holds an idempotency key with the hash of the test's key. */
const COLLIDE = {
  SQLite(key: string, segment: number): string {
    const hash = createHash("sha256").update(key).digest().readIntBE(0, 6);
    return `INSERT INTO archived_keys (hash, segment) VALUES (${hash}, ${segment})`;
  },
  PostgreSQL: (key: string, segment: number): string =>
    `INSERT INTO archived_keys (page, entries) VALUES (0, ARRAY[hash_key('${key}') + ${segment}])
     ON CONFLICT (page) DO UPDATE SET entries =
       (SELECT array_agg(entry ORDER BY entry) FROM unnest(excluded.entries || archived_keys.entries) AS entry)`,
};

describe.each(PLACES)("on %s", (engine, makePlace) => {
  test("archived keys stay known with their digests and leave the database", async () => {
    const place = await makePlace();
    const keys = Array.from({ length: 1_500 }, (_, index) => `key ${index}`);
    const ask = (key: string) => ({ key, digest: `of ${key}` });
    const firsts: number[] = [];
    {
      await using store = await place.open();
      const appended = await Promise.all(keys.map((key) => store.append("a", newEvents(2), ask(key))));
      firsts.push(...appended.map(({ first }) => first));
      for (const to of [700, 1_301, 2_900]) await archiveTo(store, to);
    }
    await using store = await place.open();
    // The key of the append that ended at 2,900 is archived, and the key of the next one is not.
    expect(await place.count("idempotency_keys")).toBe(50);
    const repeated = await Promise.all(keys.map((key) => store.append("a", newEvents(2), ask(key))));
    expect(repeated.filter(({ first }, index) => first !== firsts[index])).toEqual([]);
    expect(
      repeated.every(({ first, last, version, repeated: is }) => is && last === first + 1 && version === last),
    ).toBe(true);
    expect(await refusalOf(store.append("a", newEvents(2), { key: "key 3", digest: "other" }))).toBeInstanceOf(
      KeyReused,
    );
    expect(await store.append("a", newEvents(2), { key: "key 3" })).toMatchObject({ first: 7, repeated: true });
    expect(await store.append("a", newEvents(1), { key: "new" })).toMatchObject({ first: 3_001, repeated: false });
    expect((await take(store.readKeys({ from: 600, to: 900 }))).flat()).toHaveLength(151);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3_001 });
  });

  test("a key with the hash of an archived key stays distinct, even once archived", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await store.append("a", [newEvent()], { key: "old" });
    await store.append("a", [newEvent()]);
    await archiveTo(store, 1);
    await place.change(COLLIDE[engine]("new", 1));
    const asked = { key: "new", digest: "asked", expected: 2 };
    const both = await Promise.all([store.append("a", newEvents(2), asked), store.append("a", newEvents(2), asked)]);
    // Either of the two concurrent appends may be the first.
    expect(both.map(({ first, repeated }) => `${first} ${repeated}`).toSorted()).toEqual(["3 false", "3 true"]);
    await store.append("a", [newEvent()]);
    await archiveTo(store, 4);
    expect(await place.count("idempotency_keys")).toBe(0);
    expect(await store.append("a", newEvents(2), asked)).toEqual({ first: 3, last: 4, version: 4, repeated: true });
    expect(await refusalOf(store.append("a", newEvents(2), { ...asked, digest: "other" }))).toBeInstanceOf(KeyReused);
    expect(await store.append("a", [newEvent()], { key: "old" })).toMatchObject({ first: 1, repeated: true });
    expect(await store.head()).toMatchObject({ position: 5 });
  });

  test("a large append in pieces under a key with a colliding hash is appended once", async () => {
    const place = await makePlace();
    await using store = await place.open();
    await store.append("a", newEvents(2), { key: "old" });
    await archiveTo(store, 1);
    await store.append("a", [newEvent()]);
    await archiveTo(store, 2);
    await place.change(COLLIDE[engine]("new", 1));
    const events = Array.from({ length: 300 }, () => newEvent("T", { text: "x".repeat(1_000) }));
    expect(await store.append("b", events, { key: "new" })).toMatchObject({ first: 4, last: 303, repeated: false });
    expect(await store.append("b", events, { key: "new" })).toMatchObject({ first: 4, last: 303, repeated: true });
    expect(await store.append("b", events, { key: "old" })).toMatchObject({ first: 1, last: 2, repeated: true });
  });

  test("a repeat is refused while the segment of its key is missing", async () => {
    const place = await makePlace();
    {
      await using store = await place.open();
      await store.append("a", newEvents(3), { key: "old" });
      await store.append("a", [newEvent()]);
      await archiveTo(store, 3);
    }
    await using store = await place.open();
    const [name] = readdirSync(place.folder).map((file) => join(place.folder, file));
    renameSync(name!, `${name}.away`);
    const refused = await refusalOf(store.append("a", newEvents(3), { key: "old" }));
    expect(refused).toBeInstanceOf(StoreUnavailable);
    expect(String((refused as Error).cause)).toContain("it is missing");
    expect(await store.append("a", [newEvent()], { key: "new" })).toMatchObject({ first: 5, repeated: false });
    renameSync(`${name}.away`, name!);
    expect(await store.append("a", newEvents(3), { key: "old" })).toMatchObject({ first: 1, repeated: true });
    expect(await store.head()).toMatchObject({ position: 5 });
  });

  test("keys left by an interrupted archiving leave the database with the next segment", async () => {
    const place = await makePlace();
    const folder = createSegmentFolder(place.folder);
    let readings = 0;
    const failing: SegmentStorage = {
      ...folder,
      async read(name) {
        readings += 1;
        // The archive reads the file first to prove the segment and then to get its keys; the second read fails.
        if (readings === 2) throw new Error("the place is out of reach");
        return await folder.read(name);
      },
    };
    {
      await using store = await place.open(failing);
      for (const key of ["one", "two", "three"]) await store.append("a", newEvents(1), { key });
      expect(await refusalOf(archiveTo(store, 1))).toMatchObject({ message: "the place is out of reach" });
      expect(await store.archived()).toHaveLength(1);
      expect(await place.count("idempotency_keys")).toBe(3);
    }
    await using store = await place.open();
    expect((await take(store.readKeys({ from: 1, to: 3 }))).flat()).toHaveLength(3);
    await archiveTo(store, 2);
    expect(await place.count("idempotency_keys")).toBe(1);
    expect((await take(store.readKeys({ from: 1, to: 1 }))).flat()).toMatchObject([{ key: "one", first: 1 }]);
    for (const [index, key] of ["one", "two", "three"].entries())
      expect(await store.append("a", newEvents(1), { key })).toMatchObject({ first: index + 1, repeated: true });
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
  });
});
