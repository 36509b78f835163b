import { setTimeout as delay } from "node:timers/promises";
import type { Sql, TransactionSql as TransactionSqlOf } from "postgres";
import { StoreClosed } from "../errors.ts";
import { addressOf, type Server } from "./address.ts";
import { isLost, isReadOnly, NoPrimary, NotConnected } from "./errors.ts";

export type DatabaseSql = Sql<{ bigint: number }>;
export type TransactionSql = TransactionSqlOf<{ bigint: number }>;

/** Some connections to one database, on the server of those in its URL that takes writes. */
export interface Database {
  /**
   * Does one thing with one connection: a query, or a transaction. A connection that was lost is never used again, and
   * nor is one that does not answer in time: the server may be behind a network that lost it without a word. Throws
   * {@link NotConnected} when no server accepts a connection; calls in a pause after that, which grows, throw it at once.
   */
  run<Result>(work: (sql: DatabaseSql) => PromiseLike<Result>, deadlineMs?: number): Promise<Result>;
  /** True if a connection is missing that the next call would make: it was lost, or refused and its pause is over. */
  hasLost(): boolean;
  close(): Promise<void>;
}

export interface DatabaseOptions {
  readonly url: string;
  /** How many connections. */
  readonly connections: number;
  /** What the server's administrator sees. */
  readonly name: string;
  readonly readOnly?: boolean;
  /** The server ends a statement that takes longer; the client gives up a little later. Default {@link STATEMENT_MS_MAX}. */
  readonly statementMs?: number;
}

/**
 * The server ends what takes longer. The client gives up a little later, because a network that was cut brings no answer:
 * together they keep a caller for less than five seconds once the network is back.
 */
const STATEMENT_MS_MAX = 3_500;
const LATE_MS = 500;
export const ANSWER_MS_MAX: number = STATEMENT_MS_MAX + LATE_MS;

const CONNECT_S_MAX = 2;
/** After the first of several servers has answered: so long the others may take to show that they are newer. */
const COMPARE_MS_MAX = 500;
/** The driver's own pause grows to 20 seconds: so long a listener would hear nothing after the server is back. */
const RECONNECT_S = 0.05;

/** The pause after a failed connect, doubled with each: all instances come back at once when a server restarts. */
const PAUSE_MS_MIN = 50;
/** The most that a server which accepts connections again is noticed late. */
const PAUSE_MS_MAX = 500;

type ConnectOptions = DatabaseOptions & Required<Pick<DatabaseOptions, "statementMs">>;

/** One connection, which is made when it is first used. */
interface Slot {
  connection: Connection | undefined;
  running: number;
}

interface Connection {
  readonly sql: Promise<DatabaseSql>;
  /** True once it cannot be used: it was lost, or was never made and its pause is over. */
  isOver(): boolean;
  /** True for one that was never made: it refuses what is asked for its pause. */
  hasFailed(): boolean;
  /** Also while it is made. */
  end(): Promise<void>;
}

/** A connection to a server that takes writes. */
interface Primary {
  readonly sql: DatabaseSql;
  /** Each promotion begins the next one; 0 where there is nothing to compare. */
  readonly timeline: number;
  /** It closed while nothing used it. */
  isClosed: boolean;
}

/** Throws {@link StoreUnusable} for an address that is not to be used. */
export function openDatabase(options: DatabaseOptions): Database {
  const { statementMs = STATEMENT_MS_MAX } = options;
  const connect = createConnect({ ...options, statementMs });
  const slots = Array.from({ length: options.connections }, (): Slot => ({ connection: undefined, running: 0 }));
  let isClosed = false;

  /**
   * The driver would make another connection by itself, but counts the rows of the next answer from where the lost one
   * had stopped: the first of them would be missing.
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
      const timer = setTimeout(() => giveUp(slot, used), deadlineMs);
      slot.running += 1;
      try {
        const sql = await used.sql;
        // What begins after the end is never ended: a listener would keep the process alive.
        if (isClosed) throw new StoreClosed();
        return await work(sql);
      } catch (error) {
        // One that was never made stays for its pause.
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

/** Connects to the server that takes writes, each time the newest of all that the URL names. */
function createConnect(options: ConnectOptions): () => Connection {
  const { href, servers } = addressOf(options.url);
  /** Connects that failed since one succeeded. */
  let failures = 0;
  /** The newest one that was seen: a former primary has an older one. */
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
 * Of servers that take writes the one that was promoted last: after a failover the former primary may be back as one. A
 * server that does not answer soon after the first is left out. Throws what the last one threw when all fail.
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

/** Throws {@link NoPrimary} where nothing can be written. `comparing`: there are other servers. */
async function connectTo(
  href: string,
  server: Server,
  { name, readOnly = false, statementMs, comparing }: ConnectOptions & { readonly comparing: boolean },
  ending: AbortSignal,
): Promise<Primary> {
  // Only where it is needed: most commands work on a log in a file, and would wait for the driver to be loaded.
  const { default: postgres } = await import("postgres");
  let primary: Primary | undefined;
  const sql: DatabaseSql = postgres(href, {
    // As it was judged: the driver would read it out of the URL in its own way, and out of PGHOST.
    ...server,
    max: 1,
    connect_timeout: CONNECT_S_MAX,
    backoff: () => RECONNECT_S,
    // The driver would connect again by itself, whatever the server is by then.
    onclose: () => {
      if (primary !== undefined) primary.isClosed = true;
    },
    fetch_types: false,
    onnotice: () => {},
    // Numbers of the log are far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: {
      application_name: name,
      statement_timeout: statementMs,
      // Another role that may make functions in this database could have ours call them.
      search_path: "pg_catalog",
      // A transaction that waited for its turn is to see what the one before did, whatever the database has by default.
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
