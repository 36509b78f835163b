import { newDatabase } from "eventstore-lite/testing";
import { secret } from "../../src/platform/secret.ts";
import { postgresSecrets } from "../../src/vault/postgres-secrets.ts";
import type { SecretPlace } from "../../src/vault/secret-database.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

/** Separate place for secrets; its data is removed when it is disposed. */
export interface Place extends AsyncDisposable {
  readonly place: SecretPlace;
}

/** Creates a new, empty store for secrets in one kind of database, SQLite or PostgreSQL. */
export type Engine = () => Promise<Place>;

async function openSqlite(): Promise<Place> {
  const folder = temporaryFolder();
  return {
    place: sqliteSecrets(folder.file("secrets")),
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  };
}

async function openPostgres(): Promise<Place> {
  const url = secret(await newDatabase());
  return {
    place: postgresSecrets({ url, shown: "postgres://localhost/test", store: "vault" }),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** All engines that store secrets. */
export const ENGINES: readonly (readonly [name: string, engine: Engine])[] = [
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
];
