import { ServiceError } from "../platform/service-error.ts";
import { encrypt, open, makeDataKey, unwrap, wrap, type DataKey } from "./encrypt.ts";
import { keyId, damaged, KeyMismatch } from "./key.ts";
import {
  type Binding,
  type Encrypted,
  type SecretChanges,
  type SecretDatabase,
  type SecretLabel,
  type SecretPlace,
  type SecretRow,
  splitIntoChunks,
} from "./secret-database.ts";

/** A secret and the version to name when it is replaced. */
export interface Kept {
  readonly version: number;
  readonly value: string;
}

/**
 * Secrets by name, encrypted at rest with a data key, which the master key wraps. What is deleted leaves no bytes behind.
 * All methods throw {@link KeyMismatch} once another process has exchanged the master key, and a ServiceError: damaged,
 * or what the database throws.
 */
export interface SecretStore
  extends StoredSecrets, BoundSecrets, Pick<SecretDatabase, "note" | "keepNote">, AsyncDisposable {
  /** All names that begin so of what is gone, in order. */
  gone(prefix: string): Promise<readonly string[]>;
  /** False when `name` was claimed before and is still remembered. Times are ms since the epoch. */
  claim(name: string, until: number, now: number): Promise<boolean>;
  isClaimed(name: string, now: number): Promise<boolean>;
  /**
   * Does all of `work` or nothing of it, durably; no other change runs meanwhile. Inside of it only `secrets` are asked:
   * the store itself waits for its end.
   */
  change<Result>(work: (secrets: StoredSecrets) => Promise<Result>): Promise<Result>;
}

/** What serves one log, and no other. */
export interface BoundSecrets {
  /**
   * Binds the secrets to a log as `decide` says, which throws what speaks against it. From then on each change and each
   * look at the revision is refused once they are bound to another log, or to another of its continuations than `epoch`
   * and the one that `decide` named.
   */
  bind(epoch: string, decide: (found: Binding | undefined) => Binding): Promise<void>;
  /** Resolves (never rejects) with the refusal once another log has taken them over. */
  readonly taken: Promise<ServiceError>;
}

export interface StoredSecrets {
  /** `gone`: it was here and was deleted for ever. */
  get(name: string): Promise<Kept | "gone" | undefined>;
  /** As {@link get} for many at once, those of them that are or were here: one by one costs five times as much. */
  getAll(names: readonly string[]): Promise<ReadonlyMap<string, Kept | "gone">>;
  /** All names that begin so, in order; also of what is gone. */
  names(prefix: string): Promise<readonly string[]>;
  /** Stores durably. False when the secret is no longer at `expected` (0: absent): another writer was first. */
  put(name: string, value: string, expected: number): Promise<boolean>;
  /** Stores those that are absent: many at once cost a tenth of each alone where the database is on a network. */
  addAll(values: Iterable<readonly [name: string, value: string]>): Promise<void>;
  remove(name: string): Promise<void>;
  /** Deletes the secret; the name never gets another one. */
  bury(name: string): Promise<void>;
  /** Another number once another process has changed something. */
  revision(): Promise<number>;
  /**
   * Re-encrypts everything, so that only these master keys open it. The data key is new too: with a former master key and
   * an old copy one opens nothing that is written from now on.
   */
  rewrap(masters: readonly Uint8Array[]): Promise<void>;
  /** This master key opens nothing any more. */
  revoke(master: Uint8Array): Promise<void>;
}

export interface SecretStoreOptions {
  readonly place: SecretPlace;
  /** The master key in force. */
  readonly master: Uint8Array;
  /** Reads the master key again when it opens nothing: another process may have exchanged it. */
  readonly renew?: (() => Promise<Uint8Array>) | undefined;
}

/** Opens the store, or makes it. Throws KeyMismatch and other ServiceErrors; nothing is changed then. */
export async function openSecretStore({ place, master, renew }: SecretStoreOptions): Promise<SecretStore> {
  const database = await place.open();
  try {
    await keepDataKey(database, master);
    return await storeIn(database, async () => {
      try {
        return unwrap(await database.dataKeys(), master, database.name);
      } catch (fault) {
        if (!(fault instanceof KeyMismatch) || renew === undefined) throw fault;
        const renewed = await renew();
        return unwrap(await database.dataKeys(), renewed, database.name);
      }
    });
  } catch (fault) {
    await database[Symbol.asyncDispose]();
    throw fault;
  }
}

/** The first one who opens a place makes its data key. */
async function keepDataKey(database: SecretDatabase, master: Uint8Array): Promise<void> {
  if ((await database.dataKeys()).length > 0) return;
  await database.transact(async (rows) => {
    const isUnused = (await rows.dataKeys()).length === 0 && (await rows.names("")).length === 0;
    if (isUnused) await rows.addDataKey(wrap(makeDataKey(), master));
  });
}

async function storeIn(database: SecretDatabase, unwrapped: () => Promise<DataKey>): Promise<SecretStore> {
  let known = await unwrapped();
  const holding = createHolding(database.name);
  let seen: number | undefined;

  const change: SecretStore["change"] = async (work) => {
    for (;;) {
      const key = known;
      // A rotation by another process is seen under the lock: then it is tried once more, with the new data key.
      const done = await database.transact(async (rows) => {
        holding.check(await rows.label());
        const isInForce = (await rows.dataKeys()).some(({ id }) => id === key.id);
        return isInForce ? { result: await work(secretsIn(rows, database.name, key)) } : undefined;
      });
      if (done !== undefined) return done.result;
      known = await unwrapped();
    }
  };
  const getAll: SecretStore["getAll"] = async (names) => {
    const rows = await database.secrets(names);
    const key = known;
    // What has another data key is read together with that one.
    const isReadable = rows.every((row) => row.key === null || row.key === key.id);
    return isReadable ? opened(rows, key, database.name) : change((secrets) => secrets.getAll(names));
  };

  return {
    get: async (name) => (await getAll([name])).get(name),
    getAll,
    names: database.names,
    gone: database.buried,
    claim: database.claim,
    note: database.note,
    keepNote: database.keepNote,
    isClaimed: database.isClaimed,
    async revision() {
      const revision = await database.revision();
      if (revision !== seen) holding.check(await database.label());
      seen = revision;
      return revision;
    },
    async bind(epoch, decide) {
      const { binding: found } = await database.label();
      let binding = decide(found);
      // What is bound so already is read alone: a change would make all other processes look at their secrets again.
      if (!isSame(binding, found)) {
        await database.transact(async (rows) => {
          const label = await rows.label();
          binding = decide(label.binding);
          await rows.relabel({ ...label, binding });
        });
      }
      holding.hold(binding.log, [binding.epoch, epoch]);
    },
    taken: holding.taken,
    change,
    put: (...given) => change((secrets) => secrets.put(...given)),
    addAll: (values) => change((secrets) => secrets.addAll(values)),
    remove: (name) => change((secrets) => secrets.remove(name)),
    bury: (name) => change((secrets) => secrets.bury(name)),
    rewrap: (masters) => change((secrets) => secrets.rewrap(masters)),
    revoke: (master) => change((secrets) => secrets.revoke(master)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** Knows which log the secrets are held for, and finds that another one has them. */
function createHolding(name: string) {
  const { promise: taken, resolve } = Promise.withResolvers<ServiceError>();
  let held: { readonly log: string; readonly epochs: readonly (string | null)[] } | undefined;
  return {
    taken,
    hold(log: string, epochs: readonly (string | null)[]) {
      held = { log, epochs };
    },
    /** Throws a ServiceError (configuration). */
    check({ binding }: SecretLabel) {
      if (held === undefined || binding === undefined) return;
      if (binding.log === held.log && held.epochs.includes(binding.epoch)) return;
      const { log, place } = binding;
      const where = place === null ? "" : ` at ${place}`;
      const fault = new ServiceError(
        "configuration",
        `${name} was taken over by the log ${log}${where}: stop this service`,
      );
      resolve(fault);
      throw fault;
    },
  };
}

function isSame(one: Binding, other: Binding | undefined): boolean {
  return one.log === other?.log && one.epoch === other.epoch && one.place === other.place;
}

/** Inside of a transaction, where `first` is the data key in force. */
function secretsIn(rows: SecretChanges, place: string, first: DataKey): StoredSecrets {
  let key = first;
  const getAll: StoredSecrets["getAll"] = async (names) => opened(await rows.secrets(names), key, place);
  return {
    get: async (name) => (await getAll([name])).get(name),
    getAll,
    names: rows.names,
    revision: rows.revision,
    async put(name, value, expected) {
      const secret = encrypted(key, name, { version: expected + 1, value });
      return expected === 0 ? (await rows.add([secret])) === 1 : await rows.replace(secret, expected);
    },
    async addAll(values) {
      const secrets = [...values].map(([name, value]) => encrypted(key, name, { version: 1, value }));
      for (const some of splitIntoChunks(secrets)) await rows.add(some);
    },
    remove: rows.remove,
    bury: rows.bury,
    async rewrap(masters) {
      const next = makeDataKey();
      for (const names of splitIntoChunks(await rows.names(""))) {
        const kept = [...(await getAll(names))];
        await rows.reencrypt(kept.flatMap(([name, one]) => (one === "gone" ? [] : [encrypted(next, name, one)])));
      }
      await rows.removeDataKeys();
      for (const master of masters) await rows.addDataKey(wrap(next, master));
      key = next;
    },
    revoke: (master) => rows.removeDataKeys(keyId(master)),
  };
}

function opened(rows: readonly SecretRow[], key: DataKey, place: string): ReadonlyMap<string, Kept | "gone"> {
  const valueOf = ({ name, version, key: id, ciphertext }: SecretRow): Kept | "gone" => {
    if (ciphertext === null) return "gone";
    const value = id === key.id ? open(key.bytes, ciphertext, formatContext(key, name, version)) : undefined;
    if (value === undefined) throw damaged(place, name);
    return { version, value };
  };
  return new Map(rows.map((row) => [row.name, valueOf(row)]));
}

function encrypted(key: DataKey, name: string, { version, value }: Kept): Encrypted {
  return { name, key: key.id, ciphertext: encrypt(key.bytes, value, formatContext(key, name, version)) };
}

/** All labels of a row are authenticated, so neither another's row nor an older one of the same name opens. */
function formatContext({ id }: DataKey, name: string, version: number): string {
  return `${id}|${version}|${name}`;
}
