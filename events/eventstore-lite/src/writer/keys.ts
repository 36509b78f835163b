import type { DatabaseSync } from "node:sqlite";

/** What the first append with a key was answered. */
export interface KeptResult {
  readonly first: number;
  readonly last: number;
  readonly version: number;
}

/** Idempotency keys; written in the transaction of the append that they stand for, so neither exists alone. */
export interface Keys {
  find(key: string): KeptResult | undefined;
  keep(key: string, result: KeptResult): void;
}

export function createKeys(db: DatabaseSync): Keys {
  const select = db.prepare("SELECT first, last, version FROM idempotency_keys WHERE key = ?");
  const insert = db.prepare("INSERT INTO idempotency_keys (key, first, last, version) VALUES (?, ?, ?, ?)");
  return {
    find: (key) => select.get(key) as KeptResult | undefined,
    keep: (key, { first, last, version }) => {
      insert.run(key, first, last, version);
    },
  };
}
