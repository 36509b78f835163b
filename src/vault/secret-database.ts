import { ServiceError } from "../platform/service-error.ts";

/** Where one set of secrets is kept, or comes to be. */
export interface SecretPlace {
  /** As errors name it. */
  readonly name: string;
  /** Whether anything was ever kept there. */
  isThere(): Promise<boolean>;
  /** Opens the place, or makes it. Throws a ServiceError (configuration) where there is something else. */
  open(): Promise<SecretDatabase>;
}

/**
 * The port to an engine that keeps secrets, which are encrypted before they come here. What fails for want of space or of
 * the engine throws a ServiceError; nothing was changed then.
 */
export interface SecretDatabase extends SecretRows, AsyncDisposable {
  /** As errors name it. */
  readonly name: string;
  /**
   * Does all of `work` or nothing of it, durably; no other writer runs meanwhile. Inside of it only `rows` are asked:
   * anything else may wait for its end.
   */
  transact<Result>(work: (rows: SecretChanges) => Promise<Result>): Promise<Result>;
  /** All that is kept, as of one moment. */
  contents(): Promise<SecretContents>;
  /**
   * Keeps what another place has, all or nothing, and binds it. Where copies of one place meet, the one with more changes
   * stays, and what is gone in either is gone. Throws a ServiceError (conflict) where there is anything else.
   */
  fill(contents: SecretContents, binding?: Binding): Promise<void>;
  /** A text that is no secret; it is in no copy, and counts as no change. */
  note(name: string): Promise<string | undefined>;
  /** Undefined: there is none from now on. */
  keepNote(name: string, text: string | undefined): Promise<void>;
  /** Claims a name until a time (ms since the epoch), durably; false when it is claimed at `now`. */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
}

export interface SecretRows {
  /** Those of these names that there are. */
  secrets(names: readonly string[]): Promise<readonly SecretRow[]>;
  /** All names that begin so, in the order of their characters. */
  names(prefix: string): Promise<readonly string[]>;
  buried(prefix: string): Promise<readonly string[]>;
  /** One data key for each master key that opens it: more than one only while the master key is exchanged. */
  dataKeys(): Promise<readonly WrappedKey[]>;
  /** Another number once another process has changed something. */
  revision(): Promise<number>;
  label(): Promise<SecretLabel>;
}

/** Which log a set of secrets belongs to: it serves no other. */
export interface Binding {
  /** The log's id. */
  readonly log: string;
  /** The continuation of that log; null: the one that is opened next. */
  readonly epoch: string | null;
  /** Where that log is, as messages call it; null: anywhere. */
  readonly place: string | null;
}

export interface SecretLabel {
  /** How often something was changed here, or in what this is a copy of: of two copies, the one with more is newer. */
  readonly changes: number;
  /** Undefined: no log was opened with it yet. */
  readonly binding: Binding | undefined;
}

/** As an engine has a label; `log` is null before one was opened with it. */
export interface LabelRow extends Omit<Binding, "log"> {
  readonly changes: number;
  readonly log: string | null;
}

export function toLabel([row]: readonly LabelRow[]): SecretLabel {
  if (row === undefined) return { changes: 0, binding: undefined };
  const { changes, log, epoch, place } = row;
  return { changes, binding: log === null ? undefined : { log, epoch, place } };
}

/** What changes rows, of which a transaction makes one change. */
export interface SecretChanges extends SecretRows {
  /** Those of the names that there are none of yet. Answers how many that were. */
  add(secrets: readonly Encrypted[]): Promise<number>;
  /** Puts a secret in the place of that of the version `expected`. False: it is no longer there. */
  replace(secret: Encrypted, expected: number): Promise<boolean>;
  /** Replaces the ciphertexts of these secrets; their versions stay. */
  reencrypt(secrets: readonly Encrypted[]): Promise<void>;
  remove(name: string): Promise<void>;
  /** Leaves nothing but the name. */
  bury(name: string): Promise<void>;
  addDataKey(wrapped: WrappedKey): Promise<void>;
  claims(): Promise<readonly Claim[]>;
  relabel(label: SecretLabel): Promise<void>;
  /** Deletes everything but the label. */
  clear(): Promise<void>;
  /** As they are, with their versions. */
  insert(secrets: readonly SecretRow[], claims: readonly Claim[]): Promise<void>;
  /** Without `master`: all of them. */
  removeDataKeys(master?: string): Promise<void>;
}

export interface SecretContents {
  readonly changes: number;
  readonly dataKeys: readonly WrappedKey[];
  readonly secrets: readonly SecretRow[];
  readonly claims: readonly Claim[];
}

/** What was claimed, until when it is remembered (ms since the epoch). */
export interface Claim {
  readonly name: string;
  readonly until: number;
}

export interface Encrypted {
  readonly name: string;
  /** The id of the data key. */
  readonly key: string;
  readonly ciphertext: Uint8Array;
}

export interface SecretRow {
  readonly name: string;
  /** Of the first value 1; of what is buried any. */
  readonly version: number;
  /** Null with the ciphertext: it is buried. */
  readonly key: string | null;
  readonly ciphertext: Uint8Array | null;
}

/** A data key as a master key encrypts it; both are named by ids that disclose nothing of them. */
export interface WrappedKey {
  readonly id: string;
  readonly master: string;
  readonly wrapped: Uint8Array;
}

/** So many rows are read or written at a time. */
const ROWS_AT_ONCE = 1_000;

/** Reads and writes a whole set of secrets, by what an engine asks inside of a transaction. */
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
