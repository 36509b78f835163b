import type { ArchiveReader } from "../segments/read-segments-and-database.ts";
import type { BegunAs, ChainPoint, Presence } from "../event-store-interface.ts";
import { type Database, openDatabase } from "./database.ts";
import { isMissing, readerError } from "./classify-errors.ts";
import type { Reader } from "./database-reader.ts";

/** The place of a log on a server. */
export interface PostgresLogPlace {
  /** URL of the database, in the form that `openPostgresStore` takes. */
  readonly url: string;
  readonly schema: string;
}

/** The log's record of the server and the database where it is. If it differs from the real ones, the log is a copy. */
export interface PlaceKnown {
  /**
   * Facts that would show a copied log, but that the log's owner has no right to read from the server. `files`: the
   * change time of the file `PG_VERSION`, which the server never writes again and a copy of the files does not keep.
   */
  readonly unknown: readonly ("server" | "timeline" | "files")[];
  /** The role that owns the log, as SQL names it. */
  readonly owner: string;
}

/**
 * True if a log is a copy, or was replaced by one, other than by `restorePostgresLog`: its server, database, schema or
 * timeline differs from the recorded one. False if there is no log.
 */
export async function isPostgresLogElsewhere({ url, schema }: PostgresLogPlace): Promise<boolean> {
  return await once(url, async (database) => {
    const rows = await database
      .run((sql) => sql<{ elsewhere: boolean }[]>`SELECT ${sql(schema)}.is_elsewhere() AS elsewhere`)
      .catch((error: unknown) => {
        if (isMissing(error)) return [];
        throw error;
      });
    return rows[0]?.elsewhere === true;
  });
}

/**
 * Begins a new epoch of a log, so that stores that have it open stop. `copy`: only if the log's recorded server,
 * database or schema is not the present one, so that only the first of several programs that notice a copy begins an
 * epoch.
 */
export async function beginPostgresEpoch(
  { url, schema }: PostgresLogPlace,
  begunAs: Extract<BegunAs, "copy" | "operator">,
): Promise<void> {
  await once(url, (database) => database.run((sql) => sql`SELECT ${sql(schema)}.begin_epoch(${begunAs})`));
}

/** Returns the id and the epoch of the log in a place; undefined if there is none. */
export async function identifyPostgresLog({
  url,
  schema,
}: PostgresLogPlace): Promise<{ readonly id: string; readonly epoch: string } | undefined> {
  return await once(url, async (database) => {
    const rows = await database
      .run(
        (sql) => sql<{ id: string; epoch: string }[]>`
        SELECT i.store AS id, t.epoch FROM ${sql(schema)}.info i, ${sql(schema)}.turn t`,
      )
      .catch((error: unknown) => {
        if (isMissing(error)) return [];
        throw error;
      });
    return rows[0];
  });
}

export async function knownPostgresPlace({ url, schema }: PostgresLogPlace): Promise<PlaceKnown> {
  const [row] = await once(url, (database) =>
    database.run(
      (sql) => sql<{ place: readonly (string | null)[]; owner: string }[]>`
        SELECT array_to_json(${sql(schema)}.current_place()) AS place, quote_ident(pg_get_userbyid(p.proowner)) AS owner
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = ${schema} AND p.proname = 'current_place'`,
    ),
  );
  const [server, , , timeline, files] = row!.place;
  const parts = Object.entries({ server, timeline, files }) as [PlaceKnown["unknown"][number], string | null][];
  return { unknown: parts.filter(([, part]) => part === null).map(([name]) => name), owner: row!.owner };
}

/**
 * Checks that the database still holds the log that the store opened: the same `epoch`, and the event with this hash at
 * this position. Otherwise the log was replaced, or has lost events.
 */
export async function confirmPlace(
  reader: Reader,
  { url, schema, epoch }: PostgresLogPlace & { readonly epoch: string },
  { position, hash }: ChainPoint,
  archive: ArchiveReader,
): Promise<Presence> {
  const found = await reader.get<{ epoch: string; holds: boolean; moved: boolean }>(
    `SELECT t.epoch, $1::bigint = 0 OR EXISTS
       (SELECT FROM log.events WHERE position = $1::bigint AND hash = decode($2, 'hex')) AS holds,
       i.place IS DISTINCT FROM log.place_now() AS moved
     FROM log.turn t, log.info i`,
    position,
    hash,
  );
  if (found?.epoch !== epoch) return "replaced";
  if (!found.holds && (await archive.hashAt(position)) !== hash) return "lost";
  // The new server is recorded after a failover that lost no event; otherwise a later start would take the move for a
  // restore.
  if (found.moved) {
    const { catalogue } = archive;
    const noted = found.holds ? { last: position, hash } : catalogue.entries()[catalogue.locate(position)]!;
    await once(url, (database) =>
      database.run((sql) => sql`SELECT ${sql(schema)}.note_place(${epoch}, ${noted.last}, ${noted.hash})`),
    );
  }
  return "same";
}

async function once<Result>(url: string, work: (database: Database) => Promise<Result>): Promise<Result> {
  const database = openDatabase({ url, connections: 1, name: "eventstore-lite place" });
  try {
    return await work(database);
  } catch (error) {
    throw readerError(error);
  } finally {
    await database.close();
  }
}
