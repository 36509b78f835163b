import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { startPostgres, type PostgresServer, startProxy, type Proxy } from "eventstore-lite/testing";
import { until } from "../harness/process.ts";

/**
 * Folder of Debian's PostgreSQL servers by version (package `postgresql`). The server of npm's package cannot feed a
 * standby.
 */
const INSTALLED = "/usr/lib/postgresql";

/** Folder with the programs of Debian's newest PostgreSQL server; undefined if none is installed. */
export const installedPostgres = (existsSync(INSTALLED) ? readdirSync(INSTALLED) : [])
  .toSorted((one, other) => Number(other) - Number(one))
  .map((version) => join(INSTALLED, version, "bin"))
  .find((programs) => existsSync(join(programs, "pg_basebackup")));

/** A PostgreSQL server and a standby that follows it. */
export interface ServerPair extends AsyncDisposable {
  /** URL of one database, through a proxy that leads to the current primary. */
  readonly url: string;
  /** Stops the replication, so that the standby receives nothing more. */
  cutOff(): Promise<void>;
  /** Crashes the primary and promotes the standby. */
  failOver(): Promise<void>;
}

const REPLICATING = { wal_level: "replica", max_wal_senders: "4", hot_standby: "on" };

/** Opens a primary and a standby. If `isSynchronous`, a commit waits until the standby has it on disk. */
export async function openPair(programs: string, { isSynchronous }: { isSynchronous: boolean }): Promise<ServerPair> {
  await using stack = new AsyncDisposableStack();
  const options = { durable: true, programs, settings: REPLICATING };
  const primary = stack.use(await startPostgres(options));
  const standby = stack.use(await startPostgres({ ...options, standbyOf: primary }));
  await replicates(primary, "async");
  if (isSynchronous) {
    await primary.ask("ALTER SYSTEM SET synchronous_standby_names = '*'");
    await primary.ask("SELECT pg_reload_conf()");
    await replicates(primary, "sync");
  }
  const url = await primary.newDatabase();
  const proxy: Proxy = stack.use(await startProxy(url));
  const opened = stack.move();
  return {
    url: proxy.url,
    async cutOff() {
      await standby.ask("ALTER SYSTEM SET primary_conninfo = ''");
      await standby.ask("SELECT pg_reload_conf()");
      await until(
        () => primary.ask("SELECT 1 FROM pg_stat_replication"),
        (standbys) => standbys.length === 0,
      );
    },
    async failOver() {
      await primary.stop("immediate");
      // The proxy switches to the standby before it is promoted, like a proxy that only checks if a server answers.
      proxy.lead(standby.url(new URL(url).pathname.slice(1)));
      await standby.ask("SELECT pg_promote()");
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

async function replicates(primary: PostgresServer, state: "sync" | "async"): Promise<void> {
  await until(
    () => primary.ask("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'"),
    ([standby]) => standby?.["sync_state"] === state,
  );
}
