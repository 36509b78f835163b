import { expect, test } from "bun:test";
import { openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder } from "eventstore-lite/segments";
import { StoreUnusable } from "eventstore-lite/testing";
import postgres from "postgres";
import { newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";
import { archiveTo } from "../segments/archived-logs-by-engine.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();

const connect = (url: string) => postgres(url, { max: 1, onnotice: () => {} });

/**
 * Opens a log of forty events with idempotency keys, as a role with the rights of a service. `rights` is SQL that
 * grants or revokes rights.
 */
async function openAsRole(rights = "") {
  const url = await newDatabase();
  await (await openPostgresStore({ url }))[Symbol.asyncDispose]();
  const role = `app_${new URL(url).pathname.slice(1)}`;
  const owner = connect(url);
  await owner.unsafe(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA eventstore TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA eventstore TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA eventstore TO ${role};
    ${rights.replaceAll("ROLE", role)}`);
  await owner.end();
  const asRole = new URL(url);
  asRole.username = role;
  const folder = newLogPath();
  const open = () => openPostgresStore({ url: asRole.href, segments: createSegmentFolder(folder) });
  {
    await using store = await open();
    for (let at = 0; at < 40; at += 1) await store.append(`s${at % 4}`, newEvents(1), { key: `k${at}` });
  }
  return { url, role, folder, open, sql: connect(asRole.href) };
}

const FUNCTIONS = "eventstore.record_segment(text, text), eventstore.record_keys(text, bigint, text)";

test("a role without archive rights is refused with the missing GRANT and writes no file", async () => {
  const { role, folder, open, sql } = await openAsRole(`REVOKE EXECUTE ON FUNCTION ${FUNCTIONS} FROM ROLE;`);
  await using store = await open();
  const refused = await refusalOf(archiveTo(store, 20));
  expect(refused).toBeInstanceOf(StoreUnusable);
  expect((refused as Error).message).toMatch(
    new RegExp(`^the role may not archive: GRANT EXECUTE ON FUNCTION .*record_segment\\(text,text\\).* TO ${role}$`),
  );
  expect(await createSegmentFolder(folder).list()).toEqual([]);
  for (const call of ["record_segment('', '{}')", "record_keys('', 1, '[]')"])
    expect(await refusalOf(sql.unsafe(`SELECT eventstore.${call}`))).toMatchObject({ code: "42501" });
  await sql.end();
  expect(await store.append("s0", newEvents(1), { key: "k3" })).toMatchObject({ first: 4, repeated: true });
  expect(await take(store.read())).toHaveLength(40);
});

test("a role with archive rights can record only the log's next segment and its keys", async () => {
  const { open, sql } = await openAsRole();
  await using store = await open();
  await archiveTo(store, 10);
  const [{ epoch }] = (await sql`SELECT epoch FROM eventstore.turn`) as unknown as [{ epoch: string }];
  const claim = async (first: number, last: number, others: object = {}): Promise<unknown> => {
    const hash = await store.hashAt(last);
    const file = { first, last, name: "none", bytes: 1, sha256: "00", hash, keysFrom: 0, ...others };
    return await refusalOf(sql`SELECT eventstore.record_segment(${epoch}, ${JSON.stringify(file)})`);
  };
  const end = async (): Promise<unknown> => (await store.archived()).at(-1)?.last;
  for (const [first, last, others] of [
    [1, 20],
    [12, 20],
    [11, 41],
    [11, 10],
    [11, 20, { hash: "00".repeat(32) }],
    [11, 20, { hash: await store.hashAt(19) }],
  ] as const) {
    await claim(first, last, others);
    expect([first, last, await end()]).toEqual([first, last, 10]);
  }
  expect(await claim(11, 40)).toMatchObject({ message: "the newest event is never archived" });
  expect(await refusalOf(sql`SELECT eventstore.record_segment('another', '{}')`)).toMatchObject({ code: "EL001" });
  // The database replaces an idempotency key by its hash only if a recorded segment ends at the given position and the
  // caller's entry equals the log's. Each of the next three calls misses one of these conditions.
  const keys = [{ key: "k11", digest: "", first: 12, last: 12, version: 3 }];
  const forget = (last: number, claimed: object[]) =>
    sql`SELECT eventstore.record_keys(${epoch}, ${last}, ${JSON.stringify(claimed)})`;
  await forget(12, keys);
  await forget(10, [{ ...keys[0], first: 11 }]);
  await forget(10, [{ ...keys[0], digest: "other" }]);
  expect(await sql`SELECT FROM eventstore.idempotency_keys WHERE key = 'k11'`).toHaveLength(1);
  // The database takes the types, times and streams of a segment from its events, and ignores what the caller claims.
  await claim(11, 20, { types: { Other: 1 }, firstTime: 0, streams: [{ stream: "s9", position: 20, version: 99 }] });
  expect(await end()).toBe(20);
  expect(await store.streamHead("s9")).toMatchObject({ version: 0 });
  expect(await store.streamHead("s3")).toMatchObject({ version: 10, position: 40 });
  const [segment] = await sql`SELECT types, first_time > 0 AS timed FROM eventstore.segments WHERE last = 20`;
  expect([JSON.parse(segment!["types"]), segment!["timed"]]).toEqual([{ Tested: 10 }, true]);
  await sql.end();
  // The verification names the missing file.
  expect((await store.verify()).fault?.reason).toContain("the segment none of positions 11 to 20: it is missing");
});

test("the place of a log is noted only for its known past, even an archived one", async () => {
  const { url, open, sql } = await openAsRole();
  await using store = await open();
  await archiveTo(store, 20);
  const [{ epoch }] = (await sql`SELECT epoch FROM eventstore.turn`) as unknown as [{ epoch: string }];
  const owner = connect(url);
  const notes = async (position: number, hash: string): Promise<boolean> => {
    await owner`UPDATE eventstore.info SET place[1] = 'elsewhere'`;
    await sql`SELECT eventstore.note_place(${epoch}, ${position}, ${hash})`;
    return (await owner`SELECT FROM eventstore.info WHERE place[1] <> 'elsewhere'`).length === 1;
  };
  const hashAt = async (position: number): Promise<string> => (await store.hashAt(position))!;
  const other = "ab".repeat(32);
  expect(await notes(30, await hashAt(30))).toBe(true);
  expect(await notes(20, await hashAt(20))).toBe(true);
  expect(await notes(30, other)).toBe(false);
  expect(await notes(20, other)).toBe(false);
  expect(await notes(7, other)).toBe(false);
  await owner`UPDATE eventstore.info SET place[1] = 'elsewhere'`;
  // Position 7 lies inside an archived segment, so the database has no hash of its event. The store compares that hash
  // itself, then passes the last event of the segment to `note_place`, which records on which server the log is.
  expect(await store.confirm({ position: 7, hash: await hashAt(7) })).toBe("same");
  expect(await owner`SELECT FROM eventstore.info WHERE place[1] <> 'elsewhere'`).toHaveLength(1);
  expect(await store.confirm({ position: 7, hash: other })).toBe("lost");
  await Promise.all([owner.end(), sql.end()]);
});
