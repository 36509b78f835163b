import { ENCRYPTED_TYPES, type EventType, type LogStore } from "../../events/event-types-and-codec.ts";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import type { StorePlace } from "../log/store-backends.ts";
import type { ServiceError } from "../platform/service-error.ts";
import { keyError } from "../vault/derive-keys.ts";
import type { Binding, SecretPlace } from "../vault/secret-database.ts";
import type { MasterKeyPlace } from "../vault/master-key.ts";
import type { BoundSecrets } from "../vault/secret-store.ts";

/** Error: the log holds data that was encrypted with keys which the key store `place` does not have. */
export function keysLost(place: string, isThere: boolean): ServiceError {
  return keyError(
    `${place} ${isThere ? "does not belong to this log" : "is gone"}: without its keys the personal data in the log can ` +
      "be neither read nor erased. Put the keys back; or, to continue without that data, run " +
      "reachlog serve --accept-lost-keys",
  );
}

/**
 * Refuses to start if the keys or vault of an existing log are gone, instead of creating empty ones. Empty keys would
 * make every recipient look erased; an empty vault could not match suppressed ones. Throws a ServiceError
 * (configuration).
 */
export async function refuseLostKeys(log: StorePlace, { keys, vault }: MasterKeyPlace) {
  const [hasKeys, hasVault] = await Promise.all([keys.isThere(), vault.isThere()]);
  if (hasKeys && hasVault) return;
  await using store = await log.open();
  if (!hasKeys && (await newestKeys(store)) !== undefined) throw keysLost(keys.name, false);
  if (hasVault) return;
  // Hashes of suppressed recipients need a key from the vault. Until the first rotation of the master key, an empty
  // vault derives the same key again, so only after a rotation is a lost vault refused.
  for await (const { position } of store.readStored({ types: ["KeyRotated"], backwards: true, limit: 1 })) {
    throw keyError(
      `${vault.name} is gone, and the master key was rotated at position ${position}: without it, people who were ` +
        "suppressed and erased would not be recognised. Put it back; or, to continue without, run " +
        "reachlog serve --accept-lost-keys",
    );
  }
}

/**
 * Types of events that may contain no personal data, and then no ciphertext. Because many such events may follow each
 * other, at most {@link LOOKED_AT_MAX} of them are searched for the newest ciphertext.
 */
const MAY_BE_OPEN: readonly EventType[] = [
  "LinkClicked",
  "ConversionRecorded",
  "ConversionReversed",
  "SourceRead",
  "AuthenticationsFailed",
  "PersonalDataRead",
];

/** Maximum number of the newest events of these types that are searched for one with a ciphertext. */
const LOOKED_AT_MAX = 1_000;

/** Returns the id of the key store that encrypted the newest event; undefined if nothing was encrypted yet. */
export async function newestKeys(store: LogStore): Promise<string | undefined> {
  const always = ENCRYPTED_TYPES.filter((type) => !MAY_BE_OPEN.includes(type));
  const found = [
    await newestIn(store, ["PersonalKeysLost", ...always], 1),
    await newestIn(store, MAY_BE_OPEN, LOOKED_AT_MAX),
  ];
  return found.flatMap((one) => one ?? []).sort((a, b) => b.position - a.position)[0]?.keys;
}

async function newestIn(store: LogStore, types: readonly EventType[], limit: number) {
  for await (const { type, data, position } of store.readStored({ types, backwards: true, limit })) {
    if (type === "PersonalKeysLost") return { position, keys: (data as { replaced_by: string }).replaced_by };
    const ciphertext = ciphertextOf(data);
    if (ciphertext !== undefined) return { position, keys: ciphertext.split(":", 1)[0] };
  }
  return undefined;
}

/** A log, and the vault and keys that it is opened with. */
export interface BoundPlace {
  readonly store: StorePlace;
  readonly secrets: MasterKeyPlace;
  readonly keysAreApart: boolean;
}

/**
 * Refuses to start if vault and keys belong to a log that does not exist: a new log in its place would hide the loss.
 * Returns true if the log exists.
 */
export async function refuseLostLog(place: BoundPlace, acceptLoss = false): Promise<boolean> {
  if (await place.store.isThere()) return true;
  const [first] = await readBindings(place);
  if (first === undefined) return false;
  // Another instance may have created the log meanwhile.
  if (await place.store.isThere()) return true;
  const { name, binding } = first;
  if (isElsewhere(first, place)) throw elsewhere(name, binding, place.store.name);
  if (!acceptLoss) throw lostLog(name, binding, place.store.name);
  return false;
}

/** Refuses to put a log where vault or keys belong to another log than `log`, or to a log at another place. */
export async function refuseForeignSecrets(place: BoundPlace, log: string | undefined): Promise<void> {
  for (const bound of await readBindings(place)) {
    const { name, binding } = bound;
    if (isElsewhere(bound, place)) throw elsewhere(name, binding, place.store.name);
    if (log !== undefined && binding.log !== log) throw ofAnotherLog(name, binding, log);
  }
}

function isElsewhere({ binding, isApart }: Bound, { store }: BoundPlace): boolean {
  return isApart && binding.place !== null && binding.place !== store.name;
}

interface Bound {
  readonly name: string;
  readonly binding: Binding;
  readonly isApart: boolean;
}

async function readBindings({ secrets: { keys, vault }, keysAreApart }: BoundPlace): Promise<readonly Bound[]> {
  const readBinding = async (place: SecretPlace, isApart: boolean): Promise<readonly Bound[]> => {
    if (!(await place.isThere())) return [];
    await using secrets = await place.open();
    const { binding } = await secrets.label();
    return binding === undefined ? [] : [{ name: place.name, binding, isApart }];
  };
  return [...(await readBinding(keys, keysAreApart)), ...(await readBinding(vault, false))];
}

export interface BindOptions {
  /** True if a log without events may replace a lost one. */
  readonly acceptLoss?: boolean | undefined;
  /** True to bind vault and keys to this log although they belong to another. */
  readonly takeOverKeys?: boolean | undefined;
  /**
   * True if this process continues the log. Vault and keys are then bound to the log's present epoch, so that they
   * refuse earlier copies of the log.
   */
  readonly goesOn?: boolean;
}

/**
 * Binds vault and keys to the log that was opened with them. Throws a ServiceError (configuration) if they are bound to
 * another log, to a log at another place, or to an epoch that this log does not have because it is an older copy.
 */
export async function bindSecrets(
  { store: place, secrets: { keys: keysPlace, vault: vaultPlace }, keysAreApart }: BoundPlace,
  log: LogStore,
  { keys, vault }: { readonly keys: BoundSecrets; readonly vault: BoundSecrets },
  { acceptLoss = false, takeOverKeys = false, goesOn = false }: BindOptions,
): Promise<void> {
  const { id, epoch, epochs } = log;
  const own = { log: id, epoch, place: place.name };
  const isEmpty = (await log.head()).position === 0;
  const decide =
    (name: string, isApart: boolean) =>
    (found: Binding | undefined): Binding => {
      if (found === undefined || takeOverKeys) return own;
      if (found.log !== id) {
        if (isEmpty && acceptLoss) return own;
        throw isEmpty ? lostLog(name, found, place.name) : ofAnotherLog(name, found, id);
      }
      const isHere = found.place === null || found.place === place.name;
      if (found.epoch === epoch) {
        if (!isHere && isApart && place.isOtherAt(found.place)) throw elsewhere(name, found, place.name);
        return own;
      }
      if (!isHere && (isApart || found.epoch === null)) throw elsewhere(name, found, place.name);
      if (found.epoch !== null && !epochs.includes(found.epoch)) throw olderCopy(name, found);
      return goesOn ? own : found;
    };
  // The keys are bound before the vault. If only the log was copied, the keys may still be bound to the original log's
  // place. The copy is then refused here, before the vault is bound to it.
  await keys.bind(epoch, decide(keysPlace.name, keysAreApart));
  await vault.bind(epoch, decide(vaultPlace.name, false));
}

const TAKE_OVER = "if that log is gone for good, use --take-over-keys (of reachlog restore, audit import and serve)";

function lostLog(name: string, { log }: Binding, place: string): ServiceError {
  return keyError(
    `the log ${log} is gone from ${place}, and ${name} belongs to it: no new log is begun. Restore a backup ` +
      "(reachlog restore); or, to begin a new log with these keys, run reachlog serve --accept-loss",
  );
}

function elsewhere(name: string, { log, place }: Binding, here: string): ServiceError {
  return keyError(
    `${name} belongs to the log ${log} at ${place}, and the log here is at ${here}: two logs with the same keys would ` +
      "delete each other's. Give the log here separate keys (KEYS_DATABASE_URL, or KEYS_FILE for a file); or, " +
      TAKE_OVER,
  );
}

function ofAnotherLog(name: string, { log }: Binding, here: string): ServiceError {
  return keyError(
    `${name} belongs to the log ${log}, and the log here is ${here}. Move it away; or, if the log here was encrypted ` +
      `with these keys, as an import of that one is, and ${TAKE_OVER}`,
  );
}

function olderCopy(name: string, { log, epoch }: Binding): ServiceError {
  return keyError(
    `${name} belongs to a later epoch of the log ${log} (${epoch}) than the log here, which is an older copy. Put ` +
      `the newest backup back (reachlog restore); or, ${TAKE_OVER}`,
  );
}
