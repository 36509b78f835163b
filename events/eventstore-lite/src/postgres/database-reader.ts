import { openDatabase } from "./database.ts";
import { readerError } from "./classify-errors.ts";

export type Parameter = string | number | null;

/** Reads one log. Every query is one statement, so that no transaction stays open between chunks. */
export interface Reader {
  /**
   * Returns the rows of a query, which writes `log.` before each of the log's tables and functions. Throws {@link
   * StoreUnavailable} while the database is away, and {@link StoreClosed} once the reader is closed.
   */
  all<Row extends object>(query: string, ...parameters: Parameter[]): Promise<Row[]>;
  get<Row extends object>(query: string, ...parameters: Parameter[]): Promise<Row | undefined>;
  close(): Promise<void>;
}

/** Connections of one reader: one for long reads, and one for short reads at the same time. */
const CONNECTIONS = 2;

/** Time limit of a query in a background task: a server that is writing a restored log to its disk reads slowly. */
export const TASK_MS_MAX = 60_000;

export interface ReaderOptions {
  /** Last part of the name that the server's administrator sees for the connections. */
  readonly role?: string;
  /** Time limit of a query on the server. */
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

/** Quotes a name for SQL; it may hold any characters. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
