import { newDatabase } from "eventstore-lite/testing/postgres-server";
import type { LogConfig } from "../../../src/config/database.ts";
import { createEventLog } from "../../../src/log/event-log.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import { secret } from "../../../src/platform/secret.ts";
import { createEraseHandler } from "../../../src/privacy/retention.ts";
import { startProjector, type ProjectorOptions } from "../../../src/projector/projector.ts";
import { locateLog } from "../../../src/privacy/log-place.ts";
import { openLogAt } from "../../../src/privacy/open-log.ts";
import { temporaryFolder } from "../temporary.ts";

/** The config of a new log in a file that lasts as long as `stack`. */
export async function inFile(stack: AsyncDisposableStack): Promise<LogConfig> {
  return { kind: "sqlite", file: stack.use(temporaryFolder()).file("log.sqlite") };
}

/** The config of a new log on a PostgreSQL server. */
export async function onServer(): Promise<LogConfig> {
  const database = { url: secret(await newDatabase()), shown: "postgres://localhost/test" };
  return { kind: "postgres", ...database, keys: database };
}

/** Engines for `test.each`: a protection has to hold on both. */
export const ENGINES = [
  ["in a file", inFile],
  ["on a server", onServer],
] as const;

/** Opens a log with encrypted personal data, and its projections, as an instance does. Several may be open at once. */
export async function openInstance(
  stack: AsyncDisposableStack,
  log: LogConfig,
  { clock, ...options }: { readonly clock?: Clock } & Pick<ProjectorOptions, "pastEvery"> = {},
) {
  const place = locateLog({ log, key: secret("01".repeat(32)) } as Parameters<typeof locateLog>[0]);
  const store = stack.use(await openLogAt(place, clock === undefined ? {} : { clock }));
  const projector = stack.use(await startProjector(store, { erase: createEraseHandler(store.keyring), ...options }));
  const eventLog = createEventLog(store, () => Bun.randomUUIDv7());
  return { store, projector, eventLog, encryptedLog: store, hashesOf: () => ["hash"] };
}
