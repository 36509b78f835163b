import { newDatabase } from "eventstore-lite/testing";
import { loadConfig } from "../../../src/config/config.ts";
import type { LogConfig } from "../../../src/config/database.ts";
import { secret } from "../../../src/platform/secret.ts";
import { openReachlog, type Membership, type ReachlogOverrides } from "../../../src/service/open-reachlog.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Returns the settings of a new log in a file, which is removed with `stack`. */
export async function inFile(stack: AsyncDisposableStack): Promise<LogConfig> {
  return { kind: "sqlite", file: stack.use(temporaryFolder()).file("log.sqlite") };
}

/** Returns the settings of a new log on a PostgreSQL server. */
export async function onServer(): Promise<LogConfig> {
  const database = { url: secret(await newDatabase()), shown: "postgres://localhost/test" };
  return { kind: "postgres", ...database, keys: database };
}

/** Storage engines for `test.each`: both must keep the same promises. */
export const ENGINES = [
  ["in a file", inFile],
  ["on a server", onServer],
] as const;

/** Fake membership of a test's instance. The instance may save snapshots, and other instances do not see it. */
const UNKNOWN: Membership = { saves: () => true, async [Symbol.asyncDispose]() {} };

const joining = {
  owner: undefined,
  onCommit: () => {},
  observe: <EventLog>(eventLog: EventLog) => eventLog,
  join: async () => UNKNOWN,
};

/** Opens a log as a service does that is one of several instances, so a test may open one log several times at once. */
export async function openInstance(stack: AsyncDisposableStack, log: LogConfig, overrides: ReachlogOverrides = {}) {
  const config = { ...loadConfig({}, () => ""), log, key: secret("01".repeat(32)) };
  const context = stack.use(await openReachlog(config, overrides, joining));
  return { ...context, store: context.encryptedLog, hashesOf: () => ["hash"] };
}
