import { ServiceError } from "../platform/service-error.ts";
import type { SecretChanges, SecretContents, SecretDatabase, SecretRow } from "./secret-database.ts";

/** So many rows are read or written at a time. */
const ROWS_AT_ONCE = 1_000;

/** Reads and writes a whole set of secrets, by what an engine asks inside of a transaction. */
export function createContents({ name, transact }: Pick<SecretDatabase, "name" | "transact">): Contents {
  return {
    contents: () => transact(readAll),
    fill: (contents, binding) =>
      transact(async (rows) => {
        const label = await rows.label();
        const isEmpty = await refuseOthers(rows, contents, name);
        if (isEmpty || label.changes < contents.changes) await replaceAll(rows, contents);
        const changes = Math.max(label.changes, contents.changes);
        await rows.relabel({ changes, binding: binding ?? label.binding });
      }),
  };
}

type Contents = Pick<SecretDatabase, "contents" | "fill">;

async function readAll(rows: SecretChanges): Promise<SecretContents> {
  const secrets: SecretRow[] = [];
  for (const names of splitIntoChunks(await rows.names(""))) secrets.push(...(await rows.secrets(names)));
  const { changes } = await rows.label();
  return { changes, dataKeys: await rows.dataKeys(), secrets, claims: await rows.claims() };
}

/** By a newer copy of the same; what was deleted here for ever stays so. */
async function replaceAll(rows: SecretChanges, contents: SecretContents): Promise<void> {
  const gone = await rows.buried("");
  await rows.clear();
  for (const wrapped of contents.dataKeys) await rows.addDataKey(wrapped);
  for (const secrets of splitIntoChunks(contents.secrets)) await rows.insert(secrets, []);
  for (const claims of splitIntoChunks(contents.claims)) await rows.insert([], claims);
  for (const name of gone) await rows.bury(name);
}

/** A data key is made at random, so a place that has the same one holds a copy. Answers whether the place is empty. */
async function refuseOthers(rows: SecretChanges, contents: SecretContents, name: string): Promise<boolean> {
  const known = new Set(contents.dataKeys.map(({ id }) => id));
  const found = await rows.dataKeys();
  const isEmpty = found.length === 0 && (await rows.names("")).length === 0;
  if (isEmpty || (found.length > 0 && found.every(({ id }) => known.has(id)))) return isEmpty;
  throw new ServiceError("conflict", `${name} holds other secrets already: nothing is overwritten`);
}

export function* splitIntoChunks<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let at = 0; at < items.length; at += ROWS_AT_ONCE) yield items.slice(at, at + ROWS_AT_ONCE);
}
