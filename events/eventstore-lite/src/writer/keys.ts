import type { DatabaseSync } from "node:sqlite";

/** What the first append with a key asked for, and what it was answered. */
export interface KeptResult {
  /** Empty: nobody said. */
  readonly digest: string;
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
  const select = db.prepare("SELECT digest, first, last, version FROM idempotency_keys WHERE key = ?");
  const insert = db.prepare("INSERT INTO idempotency_keys (key, digest, first, last, version) VALUES (?, ?, ?, ?, ?)");
  return {
    find: (key) => select.get(key) as KeptResult | undefined,
    keep: (key, { digest, first, last, version }) => {
      insert.run(key, digest, first, last, version);
    },
  };
}
