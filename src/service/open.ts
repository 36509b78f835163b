import type { EventStore } from "eventstore-lite";
import type { Event } from "../../events/catalog.ts";
import type { Config } from "../config/config.ts";
import type { CheckpointStore } from "../log/checkpoint-store.ts";
import { makeId as newId, systemClock } from "../platform/clock.ts";
import { openEncryptedLog, type EncryptedLog, type EncryptedLogOptions } from "../privacy/encrypted-log.ts";
import { keysIn } from "../privacy/key-store.ts";
import { openKeyring } from "../privacy/keyring.ts";
import { refuseLostKeys } from "../privacy/lost-keys.ts";
import { masterKeyOf, unlock, type MasterKeyPlace, type Unlocked } from "../vault/master-key.ts";
import { openSecretStore } from "../vault/secret-store.ts";
import { logPlaceOf, type LogPlace } from "./log-place.ts";

/** The configured log, and all that was opened with it. Disposing it closes everything in reverse. */
export interface OpenedLog extends EncryptedLog, Unlocked, StoredLog {}

/** A log as it is stored, and what was last signed of it. */
export interface StoredLog extends EventStore<Event> {
  readonly checkpoints: CheckpointStore;
}

export type OpenLogOptions = Partial<
  Pick<EncryptedLogOptions, "owner" | "acceptLostKeys" | "clock" | "makeId" | "onCommit">
>;

/** Opens the configured log as {@link openLogAt} does. */
export async function openLog(config: Config, options?: OpenLogOptions): Promise<OpenedLog> {
  return openLogAt(logPlaceOf(config), options);
}

/** For those who only prove or copy what is stored: they see nothing personal. */
export async function openStoredLog(config: Config): Promise<StoredLog> {
  const place = logPlaceOf(config);
  await using opening = new AsyncDisposableStack();
  const store = opening.use(await place.store.open());
  const checkpoints = await place.checkpoints(store, () => seedOf(place.secrets));
  opening.move();
  return { ...store, checkpoints };
}

async function seedOf(secrets: MasterKeyPlace): Promise<Uint8Array> {
  const { vault } = await unlock(secrets);
  await using _vault = vault;
  return await vault.stableKey("checkpoints");
}

/**
 * The one way to open a log, for the service and for commands: master key → vault → keys of personal data → log.
 * Throws a ServiceError (configuration, damaged), and what the store throws.
 */
export async function openLogAt(
  { store: place, secrets, checkpoints: checkpointsOf }: LogPlace,
  { owner, acceptLostKeys = false, clock, makeId = newId, onCommit }: OpenLogOptions = {},
): Promise<OpenedLog> {
  await using opening = new AsyncDisposableStack();
  if (!acceptLostKeys) await refuseLostKeys(place, secrets);
  const unlocked = await unlock(secrets);
  const { master, vault } = unlocked;
  opening.use(vault);
  const renew = (): Promise<Uint8Array> => masterKeyOf(secrets);
  const keys = opening.use(await openSecretStore({ place: secrets.keys, master, renew }));
  const keyring = await openKeyring(keysIn(keys), clock ?? systemClock);
  const keysName = secrets.keys.name;
  const log = opening.use(
    await openEncryptedLog({ place, keysName, keyring, owner, acceptLostKeys, clock, makeId, onCommit }),
  );
  const checkpoints = await checkpointsOf(log, () => vault.stableKey("checkpoints"));
  const opened = opening.move();
  return { ...log, ...unlocked, checkpoints, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
