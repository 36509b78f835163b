import type { DatabaseSync } from "node:sqlite";
import { openWriter } from "../src/sqlite/connections.ts";

/** A log's database opened as the store opens it, but with a setting that keeps it whole and not durable. */
export function openWeakDatabase(file: string): DatabaseSync {
  const { db } = openWriter(file, Number.MAX_SAFE_INTEGER);
  db.exec("PRAGMA synchronous = NORMAL");
  return db;
}
