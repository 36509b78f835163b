import { newDatabase } from "eventstore-lite/testing/postgres-server";
import { secret } from "../../src/platform/secret.ts";
import { postgresSecrets } from "../../src/vault/postgres-secrets.ts";
import type { SecretPlace } from "../../src/vault/secret-database.ts";
import { sqliteSecrets } from "../../src/vault/sqlite-secrets.ts";
import { temporaryFolder } from "../harness/temporary.ts";

/** A place of its own, which is gone with it. */
export interface Place extends AsyncDisposable {
  readonly place: SecretPlace;
}

/** Makes a place where nothing was ever kept. */
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

/** All engines that secrets are kept in. */
export const ENGINES: readonly (readonly [name: string, engine: Engine])[] = [
  ["SQLite", openSqlite],
  ["PostgreSQL", openPostgres],
];
