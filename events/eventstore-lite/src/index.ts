// The public entry: the contract, its errors, and the store on SQLite.
export { openCheckpoint, signCheckpoint, type Checkpoint } from "./checkpoint/checkpoint.ts";
export { contradictionOf, type Contradiction } from "./checkpoint/contradiction.ts";
export { readCheckpointFile, writeCheckpointFile } from "./checkpoint/file.ts";
export { formatPublicKey, loadSigningKey, parsePublicKey, type SigningKey } from "./checkpoint/signing-key.ts";
export * from "./errors.ts";
export { importSqliteLog, type ImportOptions } from "./import/import.ts";
export type { Limits } from "./limits.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./open.ts";
export type * from "./store.ts";
