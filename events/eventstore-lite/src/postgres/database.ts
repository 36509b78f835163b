import { setTimeout as delay } from "node:timers/promises";
import type { Sql, TransactionSql as TransactionSqlOf } from "postgres";
import { StoreClosed } from "../errors.ts";
import { addressOf, type Server } from "./parse-multi-host-url.ts";
import { isLost, isReadOnly, NoPrimary, NotConnected } from "./classify-errors.ts";

export type DatabaseSql = Sql<{ bigint: number }>;
export type TransactionSql = TransactionSqlOf<{ bigint: number }>;

/** A few connections to one database, on the server of its URL that accepts writes. */
export interface Database {
  /**
   * Runs one query or transaction on one connection. A connection that was lost, or does not answer in time, is never
   * used again. Throws {@link NotConnected} if no server accepts a connection, and during a growing pause after that.
   */
  run<Result>(work: (sql: DatabaseSql) => PromiseLike<Result>, deadlineMs?: number): Promise<Result>;
  /**
   * True if the next call would connect first, because a connection was lost, or was refused and the pause after that
   * is over.
   */
  hasLost(): boolean;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  /** Number of connections to keep. */
  readonly connections: number;
  /** Name of the connections that the server's administrator sees. */
  readonly name: string;
  readonly readOnly?: boolean;
  /**
   * The server ends a statement that takes longer; the client gives up a little later. Default:
   * {@link STATEMENT_MS_MAX}.
   */
  readonly statementMs?: number;
}

/**
 * Time limit of a statement on the server. If the network is cut, no answer comes, so the client gives up a little
 * later by itself. A caller waits less than five seconds in all once the network is back.
 */
const STATEMENT_MS_MAX = 3_500;
const LATE_MS = 500;
export const ANSWER_MS_MAX: number = STATEMENT_MS_MAX + LATE_MS;

const CONNECT_S_MAX = 2;
/** Time, after the first of several servers has answered, in which the other servers can show that they are newer. */
const COMPARE_MS_MAX = 500;
/**
 * Pause of the database driver before it reconnects, in seconds. By default it grows to 20 seconds, in which a listener
 * would hear nothing although the server is back.
 */
const RECONNECT_S = 0.05;

/**
 * First pause in ms after a failed connect to PostgreSQL. It doubles with each failure, so that the instances, which
 * all connect again after a restart of the server, do not overload it.
 */
const PAUSE_MS_MIN = 50;
/**
 * Maximum pause in ms after a failed connect. An instance notices at most this much later that the server accepts
 * connections again.
 */
const PAUSE_MS_MAX = 500;

interface ConnectOptions extends DatabaseOptions {
  readonly statementMs: number;
}

/** Place for one connection, which is made on first use. */
interface Slot {
  connection: Connection | undefined;
  running: number;
}

interface Connection {
  readonly sql: Promise<DatabaseSql>;
  /**
   * True once the connection must be replaced by a new one: it was lost, or the attempt to connect failed and the pause
   * before the next attempt is over.
   */
  isOver(): boolean;
  /** True if the connection could not be made. It then refuses all calls until the pause is over. */
  hasFailed(): boolean;
  /** Ends the connection, even while it is still being made. */
  end(): Promise<void>;
}

/** A connection to a server that accepts writes. */
interface Primary {
  readonly sql: DatabaseSql;
  /** Timeline of the server, which grows each time a standby is promoted; 0 if there is no other server to compare. */
  readonly timeline: number;
  /** True once this connection has closed. */
  isClosed: boolean;
}

/**
 * Opens connections to a database. Throws {@link StoreUnusable} for an address that must not be used, such as one
 * without encryption over a network.
 */
export function openDatabase(options: DatabaseOptions): Database {
  const { statementMs = STATEMENT_MS_MAX } = options;
  const connect = createConnect({ ...options, statementMs });
  const slots = Array.from({ length: options.connections }, (): Slot => ({ connection: undefined, running: 0 }));
  let isClosed = false;

  /**
   * Drops a lost connection. The driver would reconnect, but then count the rows of the next answer from where the lost
   * connection stopped, and leave out the first ones.
   */
  function giveUp(slot: Slot, lost: Connection): void {
    if (slot.connection === lost) slot.connection = undefined;
    void lost.end();
  }

  return {
    async run(work, deadlineMs = statementMs + LATE_MS) {
      if (isClosed) throw new StoreClosed();
      const slot = slots.reduce((idlest, other) => (other.running < idlest.running ? other : idlest));
      if (slot.connection?.isOver() === true) giveUp(slot, slot.connection);
      const used = (slot.connection ??= connect());
      // A network can lose a connection without notice, so a connection whose answer is late counts as lost.
      const timer = setTimeout(() => giveUp(slot, used), deadlineMs);
      slot.running += 1;
      try {
        const sql = await used.sql;
        // Work that begins after the database was closed would never be ended; a listener, for example, would keep the
        // process alive.
        if (isClosed) throw new StoreClosed();
        return await work(sql);
      } catch (error) {
        // A connection that could not be made stays in its slot until its pause is over, so that calls fail until then.
        if ((isLost(error) || isReadOnly(error)) && !used.hasFailed()) giveUp(slot, used);
        throw isClosed ? new StoreClosed() : error;
      } finally {
        slot.running -= 1;
        clearTimeout(timer);
      }
    },
    hasLost: () => slots.some(({ connection }) => connection?.isOver() ?? true),
    async close() {
      isClosed = true;
      await Promise.all(slots.map(async ({ connection }) => connection?.end()));
    },
  };
}

/**
 * Creates the function that connects to the server that accepts writes. Each call chooses the newest server of those in
 * the URL.
 */
function createConnect(options: ConnectOptions): () => Connection {
  const { href, servers } = addressOf(options.url);
  /** Failed connects since the last successful one. */
  let failures = 0;
  /** The newest timeline that was seen; a former primary has an older one. */
  let timeline = 0;

  return () => {
    const ending = new AbortController();
    let primary: Primary | undefined;
    let failedUntil = Infinity;
    async function toPrimary(): Promise<DatabaseSql> {
      try {
        const comparing = servers.length > 1;
        primary = await newestOf(
          servers.map((server) => connectTo(href, server, { ...options, comparing }, ending.signal)),
        );
        if (primary.timeline < timeline) {
          await primary.sql.end({ timeout: 0 });
          throw new NoPrimary(`is a former primary: its timeline is ${primary.timeline}, and ${timeline} is newer`);
        }
        ({ timeline } = primary);
        failures = 0;
        return primary.sql;
      } catch (error) {
        failures += 1;
        failedUntil = performance.now() + pauseMs(failures);
        throw new NotConnected(error);
      }
    }
    const sql = toPrimary();
    return {
      sql,
      isOver: () => primary?.isClosed === true || failedUntil <= performance.now(),
      hasFailed: () => failedUntil < Infinity,
      async end() {
        ending.abort();
        await sql.then(
          (connected) => connected.end({ timeout: 0 }),
          () => undefined,
        );
      },
    };
  };
}

/**
 * Returns the server promoted last among those that accept writes, because a former primary may return after a
 * failover. Ignores servers that answer long after the first. If all fail, throws the error of the last one.
 */
async function newestOf(connecting: readonly Promise<Primary>[]): Promise<Primary> {
  const found: (Primary | undefined)[] = [];
  const all = Promise.allSettled(
    connecting.map(async (one, index) => {
      found[index] = await one;
    }),
  );
  await Promise.any(connecting).catch(({ errors }: AggregateError) => {
    throw errors.at(-1);
  });
  await Promise.race([all, delay(COMPARE_MS_MAX, undefined, { ref: false })]);
  const [newest] = found.filter((one) => one !== undefined).toSorted((one, other) => other.timeline - one.timeline);
  for (const one of connecting) {
    void one.then(
      (other) => (other === newest ? undefined : other.sql.end({ timeout: 0 })),
      () => undefined,
    );
  }
  return newest!;
}

function pauseMs(failures: number): number {
  return Math.min(PAUSE_MS_MIN * 2 ** (failures - 1), PAUSE_MS_MAX);
}

/**
 * Connects to one server. Throws {@link NoPrimary} if it accepts no writes. `comparing`: the URL names several servers,
 * so the timelines are compared.
 */
async function connectTo(
  href: string,
  server: Server,
  { name, readOnly = false, statementMs, comparing }: ConnectOptions & { readonly comparing: boolean },
  ending: AbortSignal,
): Promise<Primary> {
  // Loaded on demand, because most commands work on a log in a file and need no driver.
  const { default: postgres } = await import("postgres");
  let primary: Primary | undefined;
  const sql: DatabaseSql = postgres(href, {
    // The checked settings are passed one by one, because the driver would interpret the URL and the variable PGHOST
    // differently.
    ...server,
    max: 1,
    connect_timeout: CONNECT_S_MAX,
    backoff: () => RECONNECT_S,
    // The driver would reconnect by itself, even if the server is no longer a primary.
    onclose: () => {
      if (primary !== undefined) primary.isClosed = true;
    },
    fetch_types: false,
    onnotice: () => {},
    // Reads bigints as numbers, because all numbers of the log are far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: {
      application_name: name,
      statement_timeout: statementMs,
      // Only the system's functions are found by name. Otherwise another role that may create functions in this
      // database could make these statements call its own.
      search_path: "pg_catalog",
      // A transaction that waited for its turn must see what the previous one did, regardless of the database's
      // default.
      default_transaction_isolation: "read committed",
      ...(readOnly && { default_transaction_read_only: true }),
    },
  });
  const end = (): void => void sql.end({ timeout: 0 });
  ending.addEventListener("abort", end, { once: true });
  try {
    const [found] = await sql<{ standby: boolean; reads: string; timeline: number }[]>`
      SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS reads,
        CASE WHEN ${comparing}::boolean AND NOT pg_is_in_recovery()
          THEN ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer ELSE 0 END AS timeline`;
    const { standby, reads, timeline } = found!;
    if (standby) throw new NoPrimary("is a standby");
    if (!readOnly && reads === "on") throw new NoPrimary("is set to read-only transactions");
    primary = { sql, timeline, isClosed: false };
    return primary;
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw error;
  } finally {
    ending.removeEventListener("abort", end);
  }
}
