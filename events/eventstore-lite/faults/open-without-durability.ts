import type { DatabaseSync } from "node:sqlite";
import { openWriter } from "../src/sqlite/connections.ts";

/** Opens a log's database like the store, but with a setting that keeps it consistent and not durable. */
export function openWeakDatabase(file: string): DatabaseSync {
  const { db } = openWriter(file, Number.MAX_SAFE_INTEGER);
  db.exec("PRAGMA synchronous = NORMAL");
  return db;
}
