import {
  type Codec,
  type EventStore,
  type Limits,
  type NewEvent,
  openPostgresStore,
  openSqliteStore,
} from "eventstore-lite";
import { newDatabase } from "../testing/postgres-server.ts";
import { temporaryLogs } from "./temporary-logs.ts";

/** What both engines take. */
export interface EngineOptions {
  readonly codec?: Codec<NewEvent>;
  readonly writerTransform?: URL;
  readonly clock?: () => number;
  readonly limits?: Partial<Limits>;
}

/** Opens a new, empty store. */
export type OpenEngine = (options?: EngineOptions) => Promise<EventStore>;

/** Each engine by its name, as `describe.each` takes them; to be called at the top of a test file. */
export function engines(): readonly (readonly [name: string, open: OpenEngine])[] {
  const newLogPath = temporaryLogs();
  let database: Promise<string> | undefined;
  let schemas = 0;
  return [
    ["SQLite", (options) => openSqliteStore({ file: newLogPath(), ...options })],
    [
      "PostgreSQL",
      async (options) =>
        openPostgresStore({ url: await (database ??= newDatabase()), schema: `log ${(schemas += 1)}`, ...options }),
    ],
  ];
}
