import { readFileSync } from "node:fs";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { Options, Sql, TransactionSql as TransactionSqlOf } from "postgres";
import { StoreClosed, StoreUnusable } from "../errors.ts";
import { isLost } from "./errors.ts";

export type DatabaseSql = Sql<{ bigint: number }>;
export type TransactionSql = TransactionSqlOf<{ bigint: number }>;

/** Some connections to one database. */
export interface Database {
  /**
   * Does one thing with one connection: a query, or a transaction. A connection that was lost is never used again, and
   * nor is one that does not answer in time: the server may be behind a network that lost it without a word.
   */
  run<Result>(work: (sql: DatabaseSql) => PromiseLike<Result>, deadlineMs?: number): Promise<Result>;
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

/** One connection, which is made when it is first used. */
interface Slot {
  connected: Promise<DatabaseSql> | undefined;
  running: number;
}

/** Throws {@link StoreUnusable} for an address that is not to be used. */
export function openDatabase(options: DatabaseOptions): Database {
  const address = addressOf(options.url);
  const slots = Array.from({ length: options.connections }, (): Slot => ({ connected: undefined, running: 0 }));
  let isClosed = false;

  /**
   * The driver would make another connection by itself, but counts the rows of the next answer from where the lost one
   * had stopped: the first of them would be missing.
   */
  function giveUp(slot: Slot, lost: Promise<DatabaseSql>): void {
    if (slot.connected === lost) slot.connected = undefined;
    void lost.then((sql) => sql.end({ timeout: 0 }));
  }

  return {
    async run(work, deadlineMs = ANSWER_MS_MAX) {
      if (isClosed) throw new StoreClosed();
      const slot = slots.reduce((idlest, other) => (other.running < idlest.running ? other : idlest));
      const used = (slot.connected ??= connect(address, options));
      const timer = setTimeout(() => giveUp(slot, used), deadlineMs);
      slot.running += 1;
      try {
        return await work(await used);
      } catch (error) {
        if (isLost(error)) giveUp(slot, used);
        throw isClosed ? new StoreClosed() : error;
      } finally {
        slot.running -= 1;
        clearTimeout(timer);
      }
    },
    async close() {
      isClosed = true;
      await Promise.all(slots.map(async ({ connected }) => (await connected)?.end({ timeout: 0 })));
    },
  };
}

async function connect(
  { href, servers, ssl }: Address,
  { name, readOnly = false }: DatabaseOptions,
): Promise<DatabaseSql> {
  // Only where it is needed: most commands work on a log in a file, and would wait for the driver to be loaded.
  const { default: postgres } = await import("postgres");
  return postgres(href, {
    // As they were judged: the driver would read them out of the URL in its own way, and out of PGHOST.
    ...servers,
    ssl,
    max: 1,
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
      // Whoever else may make functions in this database could have ours call them.
      search_path: "pg_catalog",
      ...(readOnly && { default_transaction_read_only: true }),
    },
  });
}

const PORT = 5_432;

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|)$/;

interface Address {
  readonly href: string;
  /** The driver's `host` and `port`, a list each, which its types do not know. */
  readonly servers: object;
  readonly ssl: NonNullable<Options<Record<string, never>>["ssl"]>;
}

/**
 * Throws {@link StoreUnusable} for an address over a network whose server is not verified: `require` encrypts, but to
 * whomever answers. `disable` is somebody's clear decision, say inside of one machine's containers.
 */
function addressOf(url: string): Address {
  const address = URL.parse(url);
  // Without the URL: it holds a password.
  if (address === null) throw new StoreUnusable("the URL of the database cannot be read");
  const mode = address.searchParams.get("sslmode");
  const certificate = address.searchParams.get("sslrootcert");
  address.searchParams.delete("sslmode");
  address.searchParams.delete("sslrootcert");
  const { href, hostname } = address;
  const hosts = (hostname || "localhost").split(",").map((host) => host.replace(/^\[(.*)\]$/, "$1"));
  const servers = { host: hosts, port: hosts.map(() => Number(address.port) || PORT) };
  if (mode === "verify-full") {
    const isFile = certificate !== null && certificate !== "system";
    return {
      href,
      servers,
      ssl: { checkServerIdentity: oneOf(hosts), ...(isFile && { ca: readAuthority(certificate) }) },
    };
  }
  if (mode === "disable" || LOOPBACK.test(hostname)) return { href, servers, ssl: false };
  throw new StoreUnusable(
    "the database is reached over a network: its URL needs sslmode=verify-full, or sslmode=disable where nobody listens",
  );
}

/**
 * Finds fault with the certificate of a server that is none of these. For one that is named by its address, the driver
 * tells TLS no name, and on Deno its certificate would have to be that of `localhost`.
 */
function oneOf(hosts: readonly string[]): (name: string, certificate: PeerCertificate) => Error | undefined {
  return (_name, certificate) => {
    const faults = hosts.map((host) => checkServerIdentity(host, certificate));
    return faults.includes(undefined) ? undefined : faults[0];
  };
}

/** Throws {@link StoreUnusable}: a wrong path is no server that is away. */
function readAuthority(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreUnusable(`sslrootcert=${file} cannot be read: ${(error as Error).message}`);
  }
}
