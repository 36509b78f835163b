import { ServiceError } from "../platform/service-error.ts";

/** Place of one set of secrets, which exists or is to be created: a file, or tables on a server. */
export interface SecretPlace {
  /** Name of the place (a file, or tables on a server) that error messages about its secrets give. */
  readonly name: string;
  /** True if secrets were ever stored at this place. */
  isThere(): Promise<boolean>;
  /**
   * Opens the set of secrets, or creates it. Throws a ServiceError (configuration) if the place holds something else.
   */
  open(): Promise<SecretDatabase>;
}

/**
 * Port to a database that keeps a set of secrets, which arrive encrypted. Throws a ServiceError if the database fails
 * or has no space; nothing was changed then.
 */
export interface SecretDatabase extends SecretRows, NotesAndClaims, AsyncDisposable {
  /** Name of the database in error messages. */
  readonly name: string;
  /**
   * Runs `work` as one durable change: all of it or nothing, and no other writer meanwhile. `work` may use only its
   * argument `rows`: another call to this database may wait for `work` to end, and both would wait for ever.
   */
  transact<Result>(work: (rows: SecretChanges) => Promise<Result>): Promise<Result>;
  /** Reads all secrets, as of the same moment. */
  contents(): Promise<SecretContents>;
  /**
   * Stores the content of another place, all or nothing, and binds it to a log. Of two copies of one set, the one with
   * more changes stays, without secrets deleted in either. Throws a ServiceError (conflict) if other secrets are there.
   */
  fill(contents: SecretContents, binding?: Binding): Promise<void>;
}

/** Names that a caller claims until a given time; meanwhile no other caller can claim them. */
export interface Claims {
  /**
   * Claims a name until a time (ms since the epoch), durably. False if another claim of the name is still valid at
   * `now`.
   */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
}

/**
 * Access to notes and to names claimed for a time. Neither counts as a change of the secrets, so a change of a note or
 * a claim does not change the secrets' revision number.
 */
export interface NotesAndClaims extends Claims {
  /** Returns a note: a text that is no secret, is in no copy of the secrets, and does not count as a change. */
  note(name: string): Promise<string | undefined>;
  /** Stores a note by name; an undefined text removes it. */
  keepNote(name: string, text: string | undefined): Promise<void>;
}

export interface SecretRows {
  /** Returns the rows of the given names that exist. */
  secrets(names: readonly string[]): Promise<readonly SecretRow[]>;
  /** Names of secrets that begin with the prefix, in the order of their characters. */
  names(prefix: string): Promise<readonly string[]>;
  buried(prefix: string): Promise<readonly string[]>;
  /**
   * Returns the data key, wrapped once for each master key that opens it. There are two only while the master key is
   * exchanged.
   */
  dataKeys(): Promise<readonly WrappedKey[]>;
  /** Revision of the secrets: a number that differs once another process has changed any of them. */
  revision(): Promise<number>;
  label(): Promise<SecretLabel>;
}

/** The log that a set of secrets belongs to; the set serves no other. */
export interface Binding {
  /** Id of the log that the secrets belong to. */
  readonly log: string;
  /**
   * Id of the log's epoch that may use the secrets. A restored log begins a new epoch, so secrets from a backup have
   * null here until a process continues the log in that epoch.
   */
  readonly epoch: string | null;
  /**
   * Place of the log that the secrets belong to, as error messages name it. If it is null, the secrets are bound to no
   * place, so the log may be moved.
   */
  readonly place: string | null;
}

export interface SecretLabel {
  /**
   * Number of changes made to this set of secrets, including those before it was copied. Of two copies, the one with
   * more changes is newer.
   */
  readonly changes: number;
  /** Log that the secrets belong to; undefined if none was opened with them yet. */
  readonly binding: Binding | undefined;
}

/** Label of a set of secrets as a database stores it; `log` is null before a log was opened with the secrets. */
export interface LabelRow extends Omit<Binding, "log"> {
  readonly changes: number;
  readonly log: string | null;
}

export function toLabel([row]: readonly LabelRow[]): SecretLabel {
  if (row === undefined) return { changes: 0, binding: undefined };
  const { changes, log, epoch, place } = row;
  return { changes, binding: log === null ? undefined : { log, epoch, place } };
}

/**
 * Operations on the rows of one set of secrets within a transaction. However many rows it changes, the transaction adds
 * one to {@link SecretLabel.changes}.
 */
export interface SecretChanges extends SecretRows {
  /** Adds those secrets whose names do not exist yet. Returns how many were added. */
  add(secrets: readonly Encrypted[]): Promise<number>;
  /** Replaces the stored secret of the same name if its version is `expected`; false if it is not. */
  replace(secret: Encrypted, expected: number): Promise<boolean>;
  /** Replaces the ciphertexts of these secrets; their versions stay. */
  reencrypt(secrets: readonly Encrypted[]): Promise<void>;
  remove(name: string): Promise<void>;
  /** Deletes a secret for ever: of its row only the name stays. */
  bury(name: string): Promise<void>;
  addDataKey(wrapped: WrappedKey): Promise<void>;
  claims(): Promise<readonly Claim[]>;
  relabel(label: SecretLabel): Promise<void>;
  /** Deletes everything in the set of secrets but its label. */
  clear(): Promise<void>;
  /**
   * Inserts secrets and claims (names that are taken until a time) of another database unchanged; each secret keeps its
   * version.
   */
  insert(secrets: readonly SecretRow[], claims: readonly Claim[]): Promise<void>;
  /**
   * Removes the data key as wrapped with the master key that has the id `master`; without `master`, as wrapped with
   * any.
   */
  removeDataKeys(master?: string): Promise<void>;
}

export interface SecretContents {
  readonly changes: number;
  readonly dataKeys: readonly WrappedKey[];
  readonly secrets: readonly SecretRow[];
  readonly claims: readonly Claim[];
}

/** A claimed name, and until when it is remembered (ms since the epoch). */
export interface Claim {
  readonly name: string;
  readonly until: number;
}

export interface Encrypted {
  readonly name: string;
  /** Id of the data key that encrypted the secret. */
  readonly key: string;
  readonly ciphertext: Uint8Array;
}

export interface SecretRow {
  readonly name: string;
  /** Version of the secret: 1 for its first value; any number if the secret is buried (deleted for ever). */
  readonly version: number;
  /**
   * Id of the data key that encrypted the secret. Null if the secret is deleted for ever; `ciphertext` is then null
   * too.
   */
  readonly key: string | null;
  readonly ciphertext: Uint8Array | null;
}

/** A data key, encrypted with one master key; the ids of both disclose nothing about the keys. */
export interface WrappedKey {
  readonly id: string;
  readonly master: string;
  readonly wrapped: Uint8Array;
}

/** Maximum number of secrets read or written with one query. */
const ROWS_AT_ONCE = 1_000;

/** Returns functions that read and write a whole set of secrets, each in one transaction of the given database. */
export function createContents(name: string, transact: SecretDatabase["transact"]) {
  return {
    contents: () => transact(readAll),
    fill: (contents: SecretContents, binding?: Binding): Promise<void> =>
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

/** Replaces a set of secrets by a newer copy of it; secrets that were deleted here for ever stay deleted. */
async function replaceAll(rows: SecretChanges, contents: SecretContents): Promise<void> {
  const gone = await rows.buried("");
  await rows.clear();
  for (const wrapped of contents.dataKeys) await rows.addDataKey(wrapped);
  for (const secrets of splitIntoChunks(contents.secrets)) await rows.insert(secrets, []);
  for (const claims of splitIntoChunks(contents.claims)) await rows.insert([], claims);
  for (const name of gone) await rows.bury(name);
}

/**
 * Throws a ServiceError (conflict) unless the place is empty, or holds a copy of the same secrets: a copy has the same
 * data key, which is random. Returns true if the place is empty.
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
