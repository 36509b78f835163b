import { existsSync, mkdirSync, readFileSync } from "node:fs";
import type { Secret } from "../platform/secret.ts";
import { parseKey, keyError, KeyMismatch, KEY_BYTES } from "./derive-keys.ts";
import type { SecretPlace } from "./secret-database.ts";
import { openSecretStore } from "./secret-store.ts";
import { openVault, type Rotation, type Vault } from "./vault.ts";
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { makePrivateFile, replacePrivateFile, writePrivateFile } from "eventstore-lite/segments";

export interface MasterKeyPlace {
  readonly vault: SecretPlace;
  /** Place of the store with the keys of personal data. */
  readonly keys: SecretPlace;
  /**
   * Source of the master key: the secret REACHLOG_KEY, or the path of the file that holds the key, which is created at
   * the first start.
   */
  readonly key: Secret | string;
  /**
   * True if several instances may share the log. The operator restarts them one after the other, so that during a
   * rotation the former master key works until {@link endRotation}.
   */
  readonly isShared: boolean;
}

/** Names the source of the master key in messages: the path of its file, or REACHLOG_KEY. */
export function nameOfKey({ key }: MasterKeyPlace): string {
  return typeof key === "string" ? key : "REACHLOG_KEY";
}

/**
 * The opened vault, the present master key, and whether REACHLOG_KEY still holds the key that a rotation has replaced.
 */
export type Unlocked = Awaited<ReturnType<typeof unlock>>;

/**
 * Opens the vault with the configured master key, or with that of the key file next to the log, made at the first
 * start. An interrupted rotation is finished first. Throws KeyMismatch and other ServiceErrors.
 */
export async function unlock(place: MasterKeyPlace) {
  const given = await givenKey(place);
  const vault = await openVault(place.vault, given);
  try {
    const master = await finishRotation(place, vault, given);
    return { master, vault, isFormerGiven: typeof place.key !== "string" && !isSame(given, master) };
  } catch (fault) {
    await vault[Symbol.asyncDispose]();
    throw fault;
  }
}

/**
 * Returns the present master key, for a caller whose key another process has replaced. Throws KeyMismatch and other
 * ServiceErrors.
 */
export async function readMasterKey(place: MasterKeyPlace): Promise<Uint8Array> {
  const { master, vault } = await unlock(place);
  await vault[Symbol.asyncDispose]();
  return master;
}

/** Returns the master key from REACHLOG_KEY or the key file, whether or not it opens the vault. */
async function givenKey({ vault, keys, key }: MasterKeyPlace): Promise<Uint8Array> {
  if (typeof key !== "string") return parseKey(key.reveal(), "REACHLOG_KEY");
  for (const { name, isThere } of existsSync(key) ? [] : [vault, keys]) {
    // If data exists, the key file must exist too, because a new key would open none of the data. The file is looked
    // for again, because another process may just have made first the file, and then the data.
    if ((await isThere()) && !existsSync(key))
      throw keyError(`${key} is gone, and ${name} was encrypted with it: restore it, or set REACHLOG_KEY`);
  }
  return loadKeyFile(key);
}

/**
 * Last completed step of a rotation of the master key. After each step, a crash leaves everything readable with the key
 * that is then in force.
 */
export type RotationStep = "begun" | "rewrapped" | "replaced" | "ended";

/**
 * Exchanges the master key. The vault is re-encrypted first, and knows both keys from then on, so that a process with
 * either key can finish after a crash.
 */
export async function rotateKey(
  place: MasterKeyPlace,
  vault: Vault,
  rotation: Rotation,
  at: (step: RotationStep) => void = () => {},
): Promise<void> {
  await vault.beginRotation(rotation);
  at("begun");
  await finishRotation(place, vault, rotation.from, at);
}

/**
 * Retires the former master key; false if no rotation is in progress. Once the key is destroyed, old copies reveal no
 * data deleted before, except copies made during the rotation. Throws a ServiceError (configuration) if REACHLOG_KEY
 * holds it.
 */
export async function endRotation(place: MasterKeyPlace): Promise<boolean> {
  const unlocked = await unlock(place);
  await using vault = unlocked.vault;
  if (unlocked.isFormerGiven)
    throw keyError("REACHLOG_KEY holds the former key, which is about to be retired: put the new one there first");
  const isUnderWay = (await vault.rotation()) !== undefined;
  if (isUnderWay) await vault.endRotation();
  return isUnderWay;
}

/**
 * Finishes an interrupted rotation, if there is one, and returns the present master key. The former key in REACHLOG_KEY
 * works until the service starts with the new key or, with several instances, until {@link endRotation}.
 */
async function finishRotation(
  { keys, key, isShared }: MasterKeyPlace,
  vault: Vault,
  given: Uint8Array,
  at: (step: RotationStep) => void = () => {},
): Promise<Uint8Array> {
  const rotation = await vault.rotation();
  if (rotation === undefined) return given;
  await rewrapKeys(keys, rotation);
  at("rewrapped");
  if (typeof key === "string") {
    replacePrivateFile(key, formatKey(rotation.to));
    at("replaced");
  }
  if (typeof key === "string" || (!isShared && isSame(given, rotation.to))) {
    await vault.endRotation();
    at("ended");
  }
  return rotation.to;
}

/** Makes only the new master key open the keys of personal data, unless that is done already. Throws KeyMismatch. */
async function rewrapKeys(place: SecretPlace, { from, to }: Rotation): Promise<void> {
  if (!(await place.isThere())) return;
  try {
    await using keys = await openSecretStore({ place, master: from });
    await keys.rewrap([to]);
  } catch (fault) {
    if (!(fault instanceof KeyMismatch)) throw fault;
    await using _open = await openSecretStore({ place, master: to });
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.from(one).equals(other);
}

/**
 * Reads the master key from its file; creates the file, and its folder, at the first start. The file holds 64 hex
 * digits and is readable by its owner only.
 */
export function loadKeyFile(file: string): Uint8Array {
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    makeKeyFile(file, randomBytes(KEY_BYTES));
  }
  return parseKey(readFileSync(file, "utf8").trim(), file);
}

export function makeKeyFile(file: string, key: Uint8Array): void {
  makePrivateFile(file, formatKey(key));
}

/** Writes a master key to a file that the operator keeps elsewhere; never overwrites an existing file. */
export function writeKeyFile(file: string, key: Uint8Array): void {
  writePrivateFile(file, formatKey(key));
}

function formatKey(key: Uint8Array): string {
  return `${Buffer.from(key).toString("hex")}\n`;
}
