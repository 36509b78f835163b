import { isDeepStrictEqual } from "node:util";
import { ServiceError } from "../platform/service-error.ts";
import { encrypt, open, makeDataKey, unwrap, wrap, type DataKey } from "./encrypt.ts";
import { keyId, damaged, KeyMismatch } from "./derive-keys.ts";
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

/** Value of a stored secret, and the version that a caller names to replace it. */
export interface Kept {
  readonly version: number;
  readonly value: string;
}

/**
 * Secrets by name, encrypted with a data key, which the master key wraps. Deleted secrets leave no bytes behind. Throws
 * {@link KeyMismatch} once another process has exchanged the master key, and ServiceErrors (damaged, or the
 * database's).
 */
export type SecretStore = Awaited<ReturnType<typeof storeIn>>;

/**
 * The part of a secret store that reserves it for one log (`bind`), and tells when another log has taken it over
 * (`taken`).
 */
export interface BoundSecrets {
  readonly bind: SecretStore["bind"];
  readonly taken: SecretStore["taken"];
}

export type StoredSecrets = ReturnType<typeof secretsIn>;

export interface SecretStoreOptions {
  readonly place: SecretPlace;
  /** Master key in force. */
  readonly master: Uint8Array;
  /** Reads the master key again if `master` opens nothing, because another process may have exchanged it. */
  readonly renew?: (() => Promise<Uint8Array>) | undefined;
}

/** Opens a store of secrets, or creates it. Throws KeyMismatch and other ServiceErrors; nothing is changed then. */
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

/** Creates the data key of a new store of secrets; only the first process that opens the store does. */
async function keepDataKey(database: SecretDatabase, master: Uint8Array): Promise<void> {
  if ((await database.dataKeys()).length > 0) return;
  await database.transact(async (rows) => {
    const isUnused = (await rows.dataKeys()).length === 0 && (await rows.names("")).length === 0;
    if (isUnused) await rows.addDataKey(wrap(makeDataKey(), master));
  });
}

async function storeIn(database: SecretDatabase, unwrapped: () => Promise<DataKey>) {
  let known = await unwrapped();
  const holding = createHolding(database.name);
  let seen: number | undefined;

  const change = async <Result>(work: (secrets: StoredSecrets) => Promise<Result>): Promise<Result> => {
    for (;;) {
      const key = known;
      // The transaction locks the vault. If another process has replaced the data key, this attempt does nothing, and
      // the next one uses the new key.
      const done = await database.transact(async (rows) => {
        holding.check(await rows.label());
        const isInForce = (await rows.dataKeys()).some(({ id }) => id === key.id);
        return isInForce ? { result: await work(secretsIn(rows, database.name, key)) } : undefined;
      });
      if (done !== undefined) return done.result;
      known = await unwrapped();
    }
  };
  const getAll = async (names: readonly string[]): Promise<ReadonlyMap<string, Kept | "gone">> => {
    const rows = await database.secrets(names);
    const key = known;
    // If a row has another data key, another process has replaced the key. The rows are then read again, together with
    // the new key.
    const isReadable = rows.every((row) => row.key === null || row.key === key.id);
    return isReadable ? opened(rows, key, database.name) : change((secrets) => secrets.getAll(names));
  };

  const { names, claim, isClaimed, note, keepNote } = database;
  return {
    names,
    claim,
    isClaimed,
    note,
    keepNote,
    get: async (name: string) => (await getAll([name])).get(name),
    getAll,
    /** Returns the names of secrets that were deleted for ever and begin with a prefix, in order. */
    gone: database.buried,
    async revision() {
      const revision = await database.revision();
      if (revision !== seen) holding.check(await database.label());
      seen = revision;
      return revision;
    },
    /** True if `bind` has recorded these secrets as those of the log with this id, now or at an earlier start. */
    async areBoundTo(log: string): Promise<boolean> {
      return (await database.label()).binding?.log === log;
    },
    /**
     * Records that the secrets belong to the log and epoch that `decide` returns; throws what `decide` throws. Later
     * writes and reads of the revision throw if another process records another log, or an epoch that is neither this
     * one nor `epoch`.
     */
    async bind(epoch: string, decide: (found: Binding | undefined) => Binding): Promise<void> {
      const { binding: found } = await database.label();
      let binding = decide(found);
      // A binding that `decide` returns unchanged is not written, because each write makes all other processes read
      // their secrets again.
      if (!isDeepStrictEqual(binding, found)) {
        await database.transact(async (rows) => {
          const label = await rows.label();
          binding = decide(label.binding);
          await rows.relabel({ ...label, binding });
        });
      }
      holding.hold(binding.log, [binding.epoch, epoch]);
    },
    /** Resolves (never rejects) with an error once another log has taken over these secrets. */
    taken: holding.taken,
    /**
     * Runs `work` as one durable change: all of it or nothing, and no other change meanwhile. `work` may use only its
     * argument `secrets`: a call to the store itself would wait for `work` to end, and both would wait for ever.
     */
    change,
    put: (...given: Parameters<StoredSecrets["put"]>) => change((secrets) => secrets.put(...given)),
    addAll: (...given: Parameters<StoredSecrets["addAll"]>) => change((secrets) => secrets.addAll(...given)),
    remove: (name: string) => change((secrets) => secrets.remove(name)),
    bury: (name: string) => change((secrets) => secrets.bury(name)),
    rewrap: (masters: readonly Uint8Array[]) => change((secrets) => secrets.rewrap(masters)),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** Remembers for which log this process uses the secrets, and notices when another log has taken them over. */
function createHolding(name: string) {
  const { promise: taken, resolve } = Promise.withResolvers<ServiceError>();
  let held: { readonly log: string; readonly epochs: readonly (string | null)[] } | undefined;
  return {
    taken,
    hold(log: string, epochs: readonly (string | null)[]) {
      held = { log, epochs };
    },
    /**
     * Throws a ServiceError (configuration) if the secrets are bound to another log than the one that this process
     * holds them for.
     */
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

/** Secrets as seen within a transaction; `first` is the data key when the transaction begins. */
function secretsIn(rows: SecretChanges, place: string, first: DataKey) {
  let key = first;
  const getAll = async (names: readonly string[]) => opened(await rows.secrets(names), key, place);
  const { names, revision, remove, bury } = rows;
  return {
    names,
    revision,
    remove,
    bury,
    /** Returns a secret. `gone`: it existed and was deleted for ever; undefined: it never existed. */
    get: async (name: string) => (await getAll([name])).get(name),
    /**
     * Returns many secrets by name: `gone` for one that was deleted for ever, no entry for one that never existed.
     * Reading them one by one costs five times as much.
     */
    getAll,
    /**
     * Stores a secret durably. False if its stored version is no longer `expected` (0: absent), because another writer
     * was first.
     */
    async put(name: string, value: string, expected: number): Promise<boolean> {
      const secret = encrypted(key, name, { version: expected + 1, value });
      return expected === 0 ? (await rows.add([secret])) === 1 : await rows.replace(secret, expected);
    },
    /**
     * Stores secrets whose names are new, and leaves existing ones unchanged. Many in one query: over a network, one
     * query for each secret would take ten times as long.
     */
    async addAll(values: Iterable<readonly [name: string, value: string]>): Promise<void> {
      const secrets = [...values].map(([name, value]) => encrypted(key, name, { version: 1, value }));
      for (const some of splitIntoChunks(secrets)) await rows.add(some);
    },
    /**
     * Re-encrypts all secrets with a new data key, which only the given master keys open. A former master key, with an
     * old copy of the store, opens nothing that is written from now on.
     */
    async rewrap(masters: readonly Uint8Array[]): Promise<void> {
      const next = makeDataKey();
      for (const some of splitIntoChunks(await names(""))) {
        const kept = [...(await getAll(some))];
        await rows.reencrypt(kept.flatMap(([name, one]) => (one === "gone" ? [] : [encrypted(next, name, one)])));
      }
      await rows.removeDataKeys();
      for (const master of masters) await rows.addDataKey(wrap(next, master));
      key = next;
    },
    /** Makes the given master key open nothing from now on. */
    revoke: (master: Uint8Array): Promise<void> => rows.removeDataKeys(keyId(master)),
  };
}

function opened(rows: readonly SecretRow[], key: DataKey, place: string): ReadonlyMap<string, Kept | "gone"> {
  return new Map(
    rows.map(({ name, version, key: id, ciphertext }): [string, Kept | "gone"] => {
      if (ciphertext === null) return [name, "gone"];
      const value = id === key.id ? open(key.bytes, ciphertext, formatContext(key, name, version)) : undefined;
      if (value === undefined) throw damaged(place, name);
      return [name, { version, value }];
    }),
  );
}

function encrypted(key: DataKey, name: string, { version, value }: Kept): Encrypted {
  return { name, key: key.id, ciphertext: encrypt(key.bytes, value, formatContext(key, name, version)) };
}

/**
 * Formats the context of a secret's ciphertext. Key id, version and name are authenticated, so neither another secret's
 * row opens, nor an older one of the same name.
 */
function formatContext({ id }: DataKey, name: string, version: number): string {
  return `${id}|${version}|${name}`;
}
