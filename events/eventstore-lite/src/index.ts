// The public entry: the contract, its errors, and the store on SQLite.
export * from "./errors.ts";
export type { Limits } from "./limits.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./open.ts";
export type * from "./store.ts";
