import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { StoreFull } from "eventstore-lite/testing";
import { DatabaseSync } from "node:sqlite";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

const KIB = 1024;
const DATABASE_BYTES = 3_300 * KIB;
/** Size of a table that fills most of the database, so that the disk seems full until the test drops the table. */
const BALLAST_BYTES = 3_000 * KIB;

test("a full disk refuses appends, loses none, and accepts them again once there is room", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file, limits: { databaseBytes: DATABASE_BYTES } });
  sql(file, `CREATE TABLE ballast (x); INSERT INTO ballast VALUES (zeroblob(${BALLAST_BYTES}))`);

  let acknowledged = 0;
  let refused: unknown;
  while (refused === undefined) {
    refused = await refusalOf(store.append("a", [newEvent("T", "x".repeat(10 * KIB))]));
    if (refused === undefined) acknowledged += 1;
  }
  expect(refused).toBeInstanceOf(StoreFull);
  expect(await take(store.read())).toHaveLength(acknowledged);
  // The append is larger than the free space, so the whole append is refused, and not only its end.
  expect(await refusalOf(store.append("a", newEvents(5_000)))).toBeInstanceOf(StoreFull);
  // The full disk still has room for a small append. Its position shows that the log kept nothing of the large append
  // that was refused.
  expect(await store.append("a", [newEvent()])).toMatchObject({ first: acknowledged + 1, version: acknowledged + 1 });

  sql(file, "DROP TABLE ballast");
  expect(await store.append("a", newEvents(5_000))).toMatchObject({ first: acknowledged + 2 });
  expect(await store.verify()).toMatchObject({ ok: true, checked: acknowledged + 5_001 });
});

function sql(file: string, statements: string): void {
  const raw = new DatabaseSync(file);
  raw.exec(statements);
  raw.close();
}
