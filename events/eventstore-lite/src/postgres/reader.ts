import { openDatabase } from "./database.ts";
import { readerError } from "./errors.ts";

export type Parameter = string | number | null;

/** Reads one log. Every query is one statement, so that no transaction stays open between chunks. */
export interface Reader {
  /**
   * Rows of a query in which `log.` stands before each of the log's tables and functions. Throws
   * {@link StoreUnavailable} while the database is away, and {@link StoreClosed} once the reader is closed.
   */
  all<Row extends object>(query: string, ...parameters: Parameter[]): Promise<Row[]>;
  get<Row extends object>(query: string, ...parameters: Parameter[]): Promise<Row | undefined>;
  close(): Promise<void>;
}

/** Long reads, and short ones beside them. */
const CONNECTIONS = 2;

/** Of a task without a caller that waits for each query: a server that writes a restored log to its disk reads slowly. */
export const TASK_MS_MAX = 60_000;

export interface ReaderOptions {
  /** What the server's administrator sees of its connections. */
  readonly role?: string;
  /** Until the server ends a query. */
  readonly statementMs?: number;
}

export function openReader(url: string, schema: string, { role = "reader", ...options }: ReaderOptions = {}): Reader {
  const name = `eventstore-lite ${role}`;
  const database = openDatabase({ url, connections: CONNECTIONS, name, readOnly: true, ...options });
  const qualified = quoted(schema);
  const all: Reader["all"] = async (query, ...parameters) => {
    const text = query.replaceAll("log.", () => `${qualified}.`);
    try {
      return await database.run((sql) => sql.unsafe<never[]>(text, parameters, { prepare: true }));
    } catch (error) {
      throw readerError(error);
    }
  };
  return {
    all,
    get: async (query, ...parameters) => (await all<never>(query, ...parameters))[0],
    close: () => database.close(),
  };
}

/** A name as SQL takes it, whatever is in it. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
