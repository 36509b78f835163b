import { ServiceError } from "../platform/service-error.ts";

/** The place of one set of secrets that exists, or is to be created. */
export interface SecretPlace {
  /** The name of the place in error messages. */
  readonly name: string;
  /** True if anything was ever stored there. */
  isThere(): Promise<boolean>;
  /** Opens the place, or makes it. Throws a ServiceError (configuration) if it holds something else. */
  open(): Promise<SecretDatabase>;
}

/**
 * The port to an engine that keeps secrets, which arrive encrypted. Throws a ServiceError if the engine fails or has no
 * space; nothing was changed then.
 */
export interface SecretDatabase extends SecretRows, AsyncDisposable {
  /** The name of the database in error messages. */
  readonly name: string;
  /**
   * Does all of `work` or nothing of it, durably; no other writer runs meanwhile. `work` may use only `rows`: anything
   * else may wait for its end.
   */
  transact<Result>(work: (rows: SecretChanges) => Promise<Result>): Promise<Result>;
  /** All content, as of one moment. */
  contents(): Promise<SecretContents>;
  /**
   * Stores the content of another place, all or nothing, and binds it. Of two copies of one place, the one with more
   * changes stays, without what is gone in either. Throws a ServiceError (conflict) if there is anything else.
   */
  fill(contents: SecretContents, binding?: Binding): Promise<void>;
  /** A text that is no secret; it is in no copy, and does not count as a change. */
  note(name: string): Promise<string | undefined>;
  /** Undefined removes the note. */
  keepNote(name: string, text: string | undefined): Promise<void>;
  /** Claims a name until a time (ms since the epoch), durably; false if it is claimed at `now`. */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
}

export interface SecretRows {
  /** Returns the rows of the given names that exist. */
  secrets(names: readonly string[]): Promise<readonly SecretRow[]>;
  /** All names with that prefix, in the order of their characters. */
  names(prefix: string): Promise<readonly string[]>;
  buried(prefix: string): Promise<readonly string[]>;
  /** One wrapped data key for each master key that opens it: more than one only while the master key is exchanged. */
  dataKeys(): Promise<readonly WrappedKey[]>;
  /** A number that is different once another process has changed something. */
  revision(): Promise<number>;
  label(): Promise<SecretLabel>;
}

/** The log that a set of secrets belongs to; the set serves no other. */
export interface Binding {
  /** The log's id. */
  readonly log: string;
  /** The continuation of that log; null for the one that is opened next. */
  readonly epoch: string | null;
  /** Where that log is, by its name in messages; null if it may be anywhere. */
  readonly place: string | null;
}

export interface SecretLabel {
  /** Number of changes here, or in the original of this copy. Of two copies, the one with more changes is newer. */
  readonly changes: number;
  /** Undefined if no log was opened with the secrets yet. */
  readonly binding: Binding | undefined;
}

/** A label as an engine stores it; `log` is null before a log was opened with it. */
export interface LabelRow extends Omit<Binding, "log"> {
  readonly changes: number;
  readonly log: string | null;
}

export function toLabel([row]: readonly LabelRow[]): SecretLabel {
  if (row === undefined) return { changes: 0, binding: undefined };
  const { changes, log, epoch, place } = row;
  return { changes, binding: log === null ? undefined : { log, epoch, place } };
}

/** Changes rows, within a transaction that makes one change of them. */
export interface SecretChanges extends SecretRows {
  /** Adds those secrets whose names do not exist yet. Returns how many were added. */
  add(secrets: readonly Encrypted[]): Promise<number>;
  /** Replaces the secret of that name if it has the version `expected`; false if it does not. */
  replace(secret: Encrypted, expected: number): Promise<boolean>;
  /** Replaces the ciphertexts of these secrets; their versions stay. */
  reencrypt(secrets: readonly Encrypted[]): Promise<void>;
  remove(name: string): Promise<void>;
  /** Deletes everything but the name. */
  bury(name: string): Promise<void>;
  addDataKey(wrapped: WrappedKey): Promise<void>;
  claims(): Promise<readonly Claim[]>;
  relabel(label: SecretLabel): Promise<void>;
  /** Deletes everything but the label. */
  clear(): Promise<void>;
  /** Inserts the rows unchanged, with their versions. */
  insert(secrets: readonly SecretRow[], claims: readonly Claim[]): Promise<void>;
  /** Without `master`, removes all of them. */
  removeDataKeys(master?: string): Promise<void>;
}

export interface SecretContents {
  readonly changes: number;
  readonly dataKeys: readonly WrappedKey[];
  readonly secrets: readonly SecretRow[];
  readonly claims: readonly Claim[];
}

/** A claimed name, and how long it is remembered (ms since the epoch). */
export interface Claim {
  readonly name: string;
  readonly until: number;
}

export interface Encrypted {
  readonly name: string;
  /** The id of its data key. */
  readonly key: string;
  readonly ciphertext: Uint8Array;
}

export interface SecretRow {
  readonly name: string;
  /** 1 for the first value; any number for a buried secret. */
  readonly version: number;
  /** Null if the secret is buried, and so is the ciphertext. */
  readonly key: string | null;
  readonly ciphertext: Uint8Array | null;
}

/** A data key as a master key encrypts it; the ids of both disclose nothing about the keys. */
export interface WrappedKey {
  readonly id: string;
  readonly master: string;
  readonly wrapped: Uint8Array;
}

/** Maximum number of rows read or written at a time. */
const ROWS_AT_ONCE = 1_000;

/** Reads and writes a whole set of secrets, with an engine's queries within a transaction. */
export function createContents({
  name,
  transact,
}: Pick<SecretDatabase, "name" | "transact">): Pick<SecretDatabase, "contents" | "fill"> {
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

async function readAll(rows: SecretChanges): Promise<SecretContents> {
  const secrets: SecretRow[] = [];
  for (const names of splitIntoChunks(await rows.names(""))) secrets.push(...(await rows.secrets(names)));
  const { changes } = await rows.label();
  return { changes, dataKeys: await rows.dataKeys(), secrets, claims: await rows.claims() };
}

/** Replaces everything by a newer copy of the same secrets; secrets that were deleted here for ever stay deleted. */
async function replaceAll(rows: SecretChanges, contents: SecretContents): Promise<void> {
  const gone = await rows.buried("");
  await rows.clear();
  for (const wrapped of contents.dataKeys) await rows.addDataKey(wrapped);
  for (const secrets of splitIntoChunks(contents.secrets)) await rows.insert(secrets, []);
  for (const claims of splitIntoChunks(contents.claims)) await rows.insert([], claims);
  for (const name of gone) await rows.bury(name);
}

/**
 * Throws a ServiceError (conflict) unless the place is empty or holds a copy, which has the same random data key.
 * Returns true if it is empty.
 */
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
