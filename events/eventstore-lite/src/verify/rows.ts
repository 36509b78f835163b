import type { DatabaseSync } from "node:sqlite";
import { isDamage } from "../sqlite/faults.ts";

/** Why rows cannot be read. That is a finding about the log, and no failure of the check. */
export class Unreadable {
  readonly reason: string;
  constructor(cause: unknown) {
    this.reason = `the event cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
}

/**
 * Makes the function that reads the rows which a query with two parameters gives. Rows are arrays: an object for each of
 * them takes a third longer. Nothing stays open between two calls, so a check of hours holds up no checkpoint.
 */
export function createReadRows(
  db: DatabaseSync,
  sql: string,
): (first: number, second: number) => readonly unknown[] | Unreadable {
  const statement = db.prepare(sql);
  statement.setReturnArrays(true);
  return (first, second) => {
    try {
      return statement.all(first, second);
    } catch (error) {
      if (isDamage(error)) return new Unreadable(error);
      throw error;
    }
  };
}
