import { readFileSync } from "node:fs";
import postgres, { type Options, type PendingQuery, type Row, type Sql } from "postgres";
import { StoreClosed, StoreUnusable } from "../errors.ts";

export type LogSql = Sql<{ bigint: number }>;

/** Some connections to one database. */
export interface Database {
  /**
   * Sends one query. One that is not answered in time is given up together with the connections: the server may be
   * behind a network that lost them without a word, and the driver has no deadline of its own.
   */
  query<Answer extends readonly (Row | undefined)[]>(
    ask: (sql: LogSql) => PendingQuery<Answer & Row[]>,
    deadlineMs?: number,
  ): Promise<Answer>;
  /** For what is more than one query. */
  readonly sql: () => LogSql;
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
/** The driver's own pause grows to 20 seconds: so long the store would stay away after the server is back. */
const RECONNECT_S = 0.05;

export function openDatabase(options: DatabaseOptions): Database {
  let sql = connect(options);
  let isClosed = false;

  function renew(): void {
    const lost = sql;
    sql = connect(options);
    void lost.end({ timeout: 0 });
  }

  return {
    sql: () => sql,
    async query(ask, deadlineMs = ANSWER_MS_MAX) {
      if (isClosed) throw new StoreClosed();
      const asked = sql;
      const timer = setTimeout(() => {
        if (asked === sql && !isClosed) renew();
      }, deadlineMs);
      try {
        return await ask(asked);
      } catch (error) {
        if (isClosed) throw new StoreClosed();
        throw error;
      } finally {
        clearTimeout(timer);
      }
    },
    async close() {
      isClosed = true;
      await sql.end({ timeout: 0 });
    },
  };
}

function connect({ url, connections, name, readOnly = false }: DatabaseOptions): LogSql {
  const address = new URL(url);
  const ssl = encryptionOf(address);
  return postgres(address.href, {
    ...(ssl !== undefined && { ssl }),
    max: connections,
    connect_timeout: CONNECT_S_MAX,
    backoff: () => RECONNECT_S,
    // `read-write` would take a standby too.
    target_session_attrs: "primary",
    fetch_types: false,
    onnotice: () => {},
    // Numbers of the log are far below 2^53.
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
    connection: {
      application_name: name,
      statement_timeout: STATEMENT_MS_MAX,
      ...(readOnly && { default_transaction_read_only: true }),
    },
  });
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/;

/**
 * Throws {@link StoreUnusable} for an address over a network whose server is not verified: `require` encrypts, but to
 * whomever answers. `disable` is somebody's clear decision, say inside of one machine's containers.
 */
function encryptionOf(address: URL): Options<Record<string, never>>["ssl"] {
  const mode = address.searchParams.get("sslmode");
  const certificate = address.searchParams.get("sslrootcert");
  address.searchParams.delete("sslmode");
  address.searchParams.delete("sslrootcert");
  if (mode === "verify-full") {
    const isFile = certificate !== null && certificate !== "system";
    return isFile ? { ca: readFileSync(certificate, "utf8") } : "verify-full";
  }
  if (mode === "disable" || LOOPBACK.test(address.hostname)) return false;
  throw new StoreUnusable(
    "the database is reached over a network: its URL needs sslmode=verify-full, or sslmode=disable where nobody listens",
  );
}
