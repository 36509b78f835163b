import postgres from "postgres";
import { newDatabase } from "./postgres-server.ts";

/**
 * Database and schema on the shared server with the empty tables of a log. Disposing it lets another test reuse the
 * schema.
 */
export interface LogPlace extends Disposable {
  readonly url: string;
  readonly schema: string;
}

let database: Promise<string> | undefined;
let administrator: postgres.Sql | undefined;
let made = 0;
const free: string[] = [];

/**
 * Returns a place for a test's log: mostly one that another test has left, whose tables it empties, because creating
 * them takes longer. Dispose the place after its stores, and only if nothing but stores changed the log.
 */
export async function newLogPlace(): Promise<LogPlace> {
  const url = await (database ??= newDatabase());
  const schema = free.pop() ?? `log ${(made += 1)}`;
  const place = { url, schema, [Symbol.dispose]: () => void free.push(schema) };
  administrator ??= postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
  await administrator.unsafe(EMPTY.replaceAll("$schema", schema));
  return place;
}

/**
 * SQL that empties the tables of a log, if there is one, and begins a new log there. Changes the epoch first, so that
 * writers of the former log that still run are refused.
 */
const EMPTY = `
  DO $$
  DECLARE
    name text;
  BEGIN
    IF to_regclass('"$schema".turn') IS NULL THEN
      RETURN;
    END IF;
    SET LOCAL search_path TO "$schema", pg_temp;
    -- Without the triggers that keep events from being removed.
    SET LOCAL session_replication_role = replica;
    UPDATE turn SET epoch = gen_random_uuid();
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '$schema' AND tablename NOT IN ('turn', 'info', 'migrations') LOOP
      EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    PERFORM setval(pg_get_serial_sequence('epochs', 'number'), 1, false);
    INSERT INTO epochs (id, after, begun_as) SELECT epoch, 0, 'new' FROM turn;
    UPDATE info SET store = gen_random_uuid();
  END $$`;
