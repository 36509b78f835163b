import type { Sql, TransactionSql as TransactionSqlOf } from "postgres";
import { StoreClosed } from "../errors.ts";
import { addressOf, type Server } from "./address.ts";
import { isLost, isReadOnly, NotConnected, ReadOnlyServer } from "./errors.ts";

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
}

/** The server ends what takes longer; so does the client a little later, which does not hear of it when the network is cut. */
const STATEMENT_MS_MAX = 5_000;
const ANSWER_MS_MAX = STATEMENT_MS_MAX + 1_000;

const CONNECT_S_MAX = 2;
/** The driver's own pause grows to 20 seconds: so long a listener would hear nothing after the server is back. */
const RECONNECT_S = 0.05;

/** The pause after a failed connect, doubled with each: all instances come back at once when a server restarts. */
const PAUSE_MS_MIN = 50;
/** The most that a server which accepts connections again is noticed late. */
const PAUSE_MS_MAX = 500;

/** One connection, which is made when it is first used. */
interface Slot {
  connection: Connection | undefined;
  running: number;
}

interface Connection {
  readonly sql: Promise<DatabaseSql>;
  /** It closed while nobody used it. */
  isClosed: boolean;
  /** Of one that was never made: it refuses until then, and is made again afterwards. */
  failedUntil: number | undefined;
  /** Also while it is made. */
  end(): Promise<void>;
}

/** Throws {@link StoreUnusable} for an address that is not to be used. */
export function openDatabase(options: DatabaseOptions): Database {
  const connect = createConnect(options);
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
    async run(work, deadlineMs = ANSWER_MS_MAX) {
      if (isClosed) throw new StoreClosed();
      const slot = slots.reduce((idlest, other) => (other.running < idlest.running ? other : idlest));
      if (slot.connection !== undefined && isOver(slot.connection)) giveUp(slot, slot.connection);
      const used = (slot.connection ??= connect());
      const timer = setTimeout(() => giveUp(slot, used), deadlineMs);
      slot.running += 1;
      try {
        return await work(await used.sql);
      } catch (error) {
        // One that was never made stays for its pause.
        const isUnusable = isLost(error) || isReadOnly(error);
        if (isUnusable && used.failedUntil === undefined) giveUp(slot, used);
        throw isClosed ? new StoreClosed() : error;
      } finally {
        slot.running -= 1;
        clearTimeout(timer);
      }
    },
    hasLost: () => slots.some(({ connection }) => connection === undefined || isOver(connection)),
    async close() {
      isClosed = true;
      await Promise.all(slots.map(async ({ connection }) => connection?.end()));
    },
  };
}

/**
 * Connects to the server that takes writes. Begins behind the one that was tried last, so that one which does not answer
 * keeps no call from the others.
 */
function createConnect(options: DatabaseOptions): () => Connection {
  const { href, servers } = addressOf(options.url);
  let next = 0;
  /** Connects that failed since one succeeded. */
  let failures = 0;

  return () => {
    const ending = new AbortController();
    async function toPrimary(): Promise<DatabaseSql> {
      const first = next;
      for (let tried = 1; ; tried++) {
        next = (first + tried) % servers.length;
        const server = servers[(first + tried - 1) % servers.length]!;
        try {
          return await connectTo(href, server, options, ending.signal, () => {
            connection.isClosed = true;
          });
        } catch (error) {
          if (tried === servers.length || ending.signal.aborted) throw error;
        }
      }
    }
    const sql = toPrimary().then(
      (connected) => {
        failures = 0;
        return connected;
      },
      (error: unknown) => {
        failures += 1;
        connection.failedUntil = performance.now() + pauseMs(failures);
        throw new NotConnected(error);
      },
    );
    const connection: Connection = {
      sql,
      isClosed: false,
      failedUntil: undefined,
      async end() {
        ending.abort();
        await sql.then(
          (connected) => connected.end({ timeout: 0 }),
          () => undefined,
        );
      },
    };
    return connection;
  };
}

function isOver({ isClosed, failedUntil = Infinity }: Connection): boolean {
  return isClosed || failedUntil <= performance.now();
}

function pauseMs(failures: number): number {
  return Math.min(PAUSE_MS_MIN * 2 ** (failures - 1), PAUSE_MS_MAX);
}

/** Throws {@link ReadOnlyServer} where nothing can be written. */
async function connectTo(
  href: string,
  server: Server,
  { name, readOnly = false }: DatabaseOptions,
  ending: AbortSignal,
  onClosed: () => void,
): Promise<DatabaseSql> {
  // Only where it is needed: most commands work on a log in a file, and would wait for the driver to be loaded.
  const { default: postgres } = await import("postgres");
  let isConnected = false;
  const sql: DatabaseSql = postgres(href, {
    // As it was judged: the driver would read it out of the URL in its own way, and out of PGHOST.
    ...server,
    max: 1,
    connect_timeout: CONNECT_S_MAX,
    backoff: () => RECONNECT_S,
    // The driver would connect again by itself, whatever the server is by then.
    onclose: () => {
      if (isConnected) onClosed();
    },
    fetch_types: false,
    onnotice: () => {},
    // Numbers of the log are far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: {
      application_name: name,
      statement_timeout: STATEMENT_MS_MAX,
      // Whoever else may make functions in this database could have ours call them.
      search_path: "pg_catalog",
      // Whoever waited for its turn is to see what the one before did, whatever the database has by default.
      default_transaction_isolation: "read committed",
      ...(readOnly && { default_transaction_read_only: true }),
    },
  });
  const end = (): void => void sql.end({ timeout: 0 });
  ending.addEventListener("abort", end, { once: true });
  try {
    const [found] = await sql<{ standby: boolean; reads: string }[]>`
      SELECT pg_is_in_recovery() AS standby, current_setting('transaction_read_only') AS reads`;
    if (found!.standby) throw new ReadOnlyServer("is a standby");
    if (!readOnly && found!.reads === "on") throw new ReadOnlyServer("is set to read-only transactions");
    isConnected = true;
    return sql;
  } catch (error) {
    await sql.end({ timeout: 0 });
    throw error;
  } finally {
    ending.removeEventListener("abort", end);
  }
}
