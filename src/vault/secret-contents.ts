import { ServiceError } from "../platform/service-error.ts";
import type { SecretChanges, SecretContents, SecretDatabase, SecretRow } from "./secret-database.ts";

/** So many rows are read or written at a time. */
const ROWS_AT_ONCE = 1_000;

/** Reads and writes a whole set of secrets, by what an engine asks inside of a transaction. */
export function contentsOf({ name, transact }: Pick<SecretDatabase, "name" | "transact">): Contents {
  return {
    contents: () => transact(readAll),
    fill: (contents) =>
      transact(async (rows) => {
        await refuseOthers(rows, contents, name);
        await rows.clear();
        for (const wrapped of contents.dataKeys) await rows.addDataKey(wrapped);
        for (const secrets of chunksOf(contents.secrets)) await rows.insert(secrets, []);
        for (const claims of chunksOf(contents.claims)) await rows.insert([], claims);
      }),
  };
}

type Contents = Pick<SecretDatabase, "contents" | "fill">;

async function readAll(rows: SecretChanges): Promise<SecretContents> {
  const secrets: SecretRow[] = [];
  for (const names of chunksOf(await rows.names(""))) secrets.push(...(await rows.secrets(names)));
  return { dataKeys: await rows.dataKeys(), secrets, claims: await rows.claims() };
}

/** A data key is made at random, so whoever has the same one is a copy. */
async function refuseOthers(rows: SecretChanges, contents: SecretContents, name: string): Promise<void> {
  const known = new Set(contents.dataKeys.map(({ id }) => id));
  const found = await rows.dataKeys();
  const isEmpty = found.length === 0 && (await rows.names("")).length === 0;
  if (isEmpty || (found.length > 0 && found.every(({ id }) => known.has(id)))) return;
  throw new ServiceError("conflict", `${name} holds secrets already: nothing is overwritten`);
}

export function* chunksOf<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += ROWS_AT_ONCE) yield items.slice(at, at + ROWS_AT_ONCE);
}
