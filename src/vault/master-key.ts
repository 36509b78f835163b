import { existsSync } from "node:fs";
import type { LogFiles } from "../log/log-files.ts";
import type { Secret } from "../platform/secret.ts";
import { loadKeyFile } from "./key-file.ts";
import { keyId, parseKey } from "./key.ts";
import { finishRotation, type Rotated } from "./rotation.ts";
import type { Rotation } from "./vault.ts";
import { ServiceError } from "../platform/service-error.ts";

/** Where the master key is, and what is sealed with it. */
export interface MasterKeyOptions {
  readonly files: Pick<LogFiles, "key" | "vault">;
  /** The keys of personal data. */
  readonly keysFile: string;
  /** Wraps them with another master key. */
  readonly rewrap: (rotation: Rotation) => void;
  /** Undefined: the key is in its file. */
  readonly configured: Secret | undefined;
}

/**
 * The master key in force: as configured, or that of the key file beside the log, made at the first start. A rotation
 * that was interrupted is finished first. Throws KeyError, VaultKeyMismatch, VaultDamaged and KeysFileMismatch.
 */
export function openMasterKey(options: MasterKeyOptions): Uint8Array {
  return finishRotation(rotatedOf(options), givenKey(options));
}

/** The key as it is given, whatever the vault says of it. */
function givenKey({ files: { key, vault }, keysFile, configured }: MasterKeyOptions): Uint8Array {
  if (configured !== undefined) return parseKey(configured.reveal(), "REACHLOG_KEY");
  const sealed = [vault, keysFile].find((file) => existsSync(file));
  // A new key would open nothing of what is there.
  if (sealed !== undefined && !existsSync(key)) {
    throw new ServiceError(
      "configuration",
      `${key} is gone, and ${sealed} was sealed with it: restore it, or set REACHLOG_KEY`,
    );
  }
  return loadKeyFile(key);
}

/** Whether REACHLOG_KEY still holds the key that a rotation has replaced by `inForce`. */
export function isFormerKeyGiven({ configured }: MasterKeyOptions, inForce: Uint8Array): boolean {
  return configured !== undefined && keyId(parseKey(configured.reveal(), "REACHLOG_KEY")) !== keyId(inForce);
}

/** Everything of a log that is sealed with the master key. */
export function rotatedOf({ files, rewrap, configured }: MasterKeyOptions): Rotated {
  return {
    vaultFile: files.vault,
    keyFile: configured === undefined ? files.key : undefined,
    rewrap,
  };
}
