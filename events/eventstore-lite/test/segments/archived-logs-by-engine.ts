import { afterEach } from "bun:test";
import { type EventStore, type NewEvent, openSqliteStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder, type SegmentStorage } from "eventstore-lite/segments";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import postgres from "postgres";
import { newEvent, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { type LogPlace, newLogPlace } from "../../src/testing/reused-postgres-schemas.ts";
import type { temporaryLogs } from "../temporary-logs.ts";

/** Place for the log of a test, on SQLite or PostgreSQL, and for the segments of its archive. */
export interface Place {
  readonly folder: string;
  open(segments?: SegmentStorage): Promise<EventStore>;
  /** Executes SQL on the log's tables, like an attacker or an administrator who errs. */
  change(sql: string): Promise<unknown>;
  /** Counts the rows of one of the log's tables. */
  count(table: string): Promise<number>;
  /** Executes SQL on the log's tables without the triggers that guard them. */
  withoutTriggers(sql: string): Promise<unknown>;
}

/** Returns the places by engine. Call it at the top of a test file: a test's places are freed after the test. */
export function createPlaces(
  newLogPath: ReturnType<typeof temporaryLogs>,
  {
    writerThread = true,
  }: { /** False saves starting a thread for each store. */ readonly writerThread?: boolean } = {},
): readonly (readonly [engine: "SQLite" | "PostgreSQL", make: () => Promise<Place>])[] {
  /** Places whose log was changed only by stores, so that later tests may reuse them. */
  const unchanged = new Set<LogPlace>();
  afterEach(() => {
    for (const place of unchanged) place[Symbol.dispose]();
    unchanged.clear();
  });
  return [
    [
      "SQLite",
      async () => {
        const file = newLogPath();
        const folder = join(dirname(file), "segments");
        return {
          folder,
          open: (segments = createSegmentFolder(folder)) => openSqliteStore({ file, segments, writerThread }),
          async change(sql) {
            const db = new DatabaseSync(file);
            try {
              db.exec(sql);
            } finally {
              db.close();
            }
          },
          async count(table) {
            const db = new DatabaseSync(file, { readOnly: true });
            try {
              return Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()!["rows"]);
            } finally {
              db.close();
            }
          },
          async withoutTriggers(sql) {
            const db = new DatabaseSync(file);
            try {
              for (const { name } of db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all())
                db.exec(`DROP TRIGGER ${String(name)}`);
              db.exec(sql);
            } finally {
              db.close();
            }
          },
        };
      },
    ],
    [
      "PostgreSQL",
      async () => {
        const folder = join(dirname(newLogPath()), "segments");
        const place = await newLogPlace();
        unchanged.add(place);
        const { url, schema } = place;
        const change = async (sql: string): Promise<void> => {
          unchanged.delete(place);
          const owner = postgres(url, { max: 1, onnotice: () => {} });
          try {
            await owner.unsafe(`SET search_path = "${schema}"; ${sql}`);
          } finally {
            await owner.end();
          }
        };
        return {
          folder,
          change,
          open: (segments = createSegmentFolder(folder)) => openPostgresStore({ url, schema, segments, writerThread }),
          async count(table) {
            const owner = postgres(url, { max: 1 });
            try {
              return (await owner.unsafe(`SELECT count(*)::integer AS rows FROM "${schema}".${table}`))[0]!["rows"];
            } finally {
              await owner.end();
            }
          },
          async withoutTriggers(sql) {
            for (const table of ["segments", "archived_streams"])
              await change(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
            await change(sql);
          },
        };
      },
    ],
  ];
}

/** Returns events with some bytes of data each that do not compress. */
export function eventsOf(count: number, bytes = 20): NewEvent[] {
  return Array.from({ length: count }, (_, index) =>
    newEvent(`T${index % 3}`, {
      index,
      text: Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex"),
    }),
  );
}

export const archiveTo = (store: EventStore, to: number) => take(store.archive({ to }));
