import { existsSync } from "node:fs";
import type { LogFiles } from "../log/log-files.ts";
import type { Secret } from "../platform/secret.ts";
import { keyError, KeyMismatch } from "./error.ts";
import { loadKeyFile, replaceKeyFile } from "./key-file.ts";
import { parseKey } from "./key.ts";
import { openSecretStore } from "./secret-store.ts";
import { openVault, type Rotation, type Vault } from "./vault.ts";

/** Where the master key is, and what it opens. */
export interface MasterKeyPlace {
  /** `keys` holds the keys of personal data. */
  readonly files: Pick<LogFiles, "key" | "vault" | "keys">;
  /** Undefined: the key is in its file. */
  readonly configured: Secret | undefined;
}

export interface Unlocked {
  /** The master key in force. */
  readonly master: Uint8Array;
  readonly vault: Vault;
  /** Whether REACHLOG_KEY still holds the key that a rotation has replaced. */
  readonly isFormerGiven: boolean;
}

/**
 * Opens the vault with the master key: as configured, or of the key file beside the log, made at the first start. A
 * rotation that was interrupted is finished first. Throws KeyMismatch and other ServiceErrors.
 */
export function unlock(place: MasterKeyPlace): Unlocked {
  const given = givenKey(place);
  const vault = openVault(place.files.vault, given);
  try {
    const master = finishRotation(place, vault, given);
    return { master, vault, isFormerGiven: place.configured !== undefined && !isSame(given, master) };
  } catch (fault) {
    vault[Symbol.dispose]();
    throw fault;
  }
}

/** The master key in force by now, for who finds that another process has exchanged it. Throws as {@link unlock}. */
export function masterKeyOf(place: MasterKeyPlace): Uint8Array {
  const { master, vault } = unlock(place);
  vault[Symbol.dispose]();
  return master;
}

/** The key as it is given, whatever the vault says of it. */
function givenKey({ files: { key, vault, keys }, configured }: MasterKeyPlace): Uint8Array {
  if (configured !== undefined) return parseKey(configured.reveal(), "REACHLOG_KEY");
  const wrapped = [vault, keys].find((file) => existsSync(file));
  // A new key would open nothing of what is there.
  if (wrapped !== undefined && !existsSync(key)) {
    throw keyError(`${key} is gone, and ${wrapped} was encrypted with it: restore it, or set REACHLOG_KEY`);
  }
  return loadKeyFile(key);
}

/** What was just done; after each step a crash leaves everything readable with the key that is then in force. */
export type Step = "begun" | "rewrapped" | "replaced" | "ended";

/**
 * Exchanges the master key. The vault comes first, and from then on knows both keys, so that whoever opens it with
 * either one can finish.
 */
export function rotateKey(
  place: MasterKeyPlace,
  vault: Vault,
  rotation: Rotation,
  at: (step: Step) => void = () => {},
): void {
  vault.beginRotation(rotation);
  at("begun");
  finishRotation(place, vault, rotation.from, at);
}

/**
 * Finishes a rotation that was begun, if there is one, and answers the key in force. A key from the environment stays
 * good until the service is started with the new one.
 */
function finishRotation(
  { files, configured }: MasterKeyPlace,
  vault: Vault,
  given: Uint8Array,
  at: (step: Step) => void = () => {},
): Uint8Array {
  const rotation = vault.rotation();
  if (rotation === undefined) return given;
  rewrapKeys(files.keys, rotation);
  at("rewrapped");
  if (configured === undefined) {
    replaceKeyFile(files.key, rotation.to);
    at("replaced");
  }
  if (configured === undefined || isSame(given, rotation.to)) {
    vault.endRotation();
    at("ended");
  }
  return rotation.to;
}

/** Lets only the new master key open the keys of personal data, unless it is so already. Throws KeyMismatch. */
function rewrapKeys(file: string, { from, to }: Rotation): void {
  if (!existsSync(file)) return;
  try {
    using keys = openSecretStore({ file, master: from });
    keys.rewrap([to]);
  } catch (fault) {
    if (!(fault instanceof KeyMismatch)) throw fault;
    openSecretStore({ file, master: to })[Symbol.dispose]();
  }
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.from(one).equals(other);
}
