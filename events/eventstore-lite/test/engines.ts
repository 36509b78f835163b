import type { Limits } from "../src/limits.ts";
import { type Codec, type EventStore, type NewEvent, openSqliteStore, StoreClosed } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { createSegmentFolder } from "eventstore-lite/segments";
import { newLogPlace } from "../src/testing/reused-postgres-schemas.ts";
import { temporaryLogs } from "./temporary-logs.ts";

/** Options that stores of both engines, SQLite and PostgreSQL, have in common. */
export interface EngineOptions {
  readonly codec?: Codec<NewEvent>;
  readonly writerTransform?: URL;
  readonly clock?: () => number;
  readonly limits?: Partial<Limits>;
  readonly writerThread?: boolean;
}

/** Opens a new, empty store for a test. */
export type OpenEngine = (options?: EngineOptions) => Promise<EventStore>;

/** Changes how a test opens stores: each archives most of its events before an append resolves. */
export function archiving(open: OpenEngine): OpenEngine {
  return async (options) => {
    const store = await open(options);
    let next: Promise<void> | undefined;
    let work = Promise.resolve();
    const archive = async (): Promise<void> => {
      next = undefined;
      const { position } = await store.head();
      await Array.fromAsync(store.archive({ to: position - (position % 3) }));
    };
    return {
      ...store,
      async append(...append) {
        const appended = await store.append(...append);
        // Appends that wait at the same time share the next archiving.
        await (next ??= work = work.then(archive).catch(passClosed));
        return appended;
      },
    };
  };
}

function passClosed(error: unknown): void {
  if (!(error instanceof StoreClosed)) throw error;
}

/**
 * Returns each engine with its name, as `describe.each` takes them; call it at the top of a test file. `common`:
 * options of all stores.
 */
export function engines(common: EngineOptions = {}): readonly (readonly [name: string, open: OpenEngine])[] {
  const newLogPath = temporaryLogs();
  return [
    ["SQLite", (options) => openSqliteStore({ file: newLogPath(), ...common, ...options })],
    [
      "PostgreSQL",
      async (options) => {
        const { url, schema, ...place } = await newLogPlace();
        const segments = createSegmentFolder(`${newLogPath()}.segments`);
        const store = await openPostgresStore({ url, schema, segments, ...common, ...options });
        let isFree = false;
        return {
          ...store,
          async [Symbol.asyncDispose]() {
            await store[Symbol.asyncDispose]();
            if (!isFree) place[Symbol.dispose]();
            isFree = true;
          },
        };
      },
    ],
  ];
}
