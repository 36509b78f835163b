import { existsSync } from "node:fs";
import { replaceKeyFile } from "./key-file.ts";
import { keepStableKeys } from "./stable-keys.ts";
import { openVault, type Rotation } from "./vault.ts";

/** What depends on the master key. */
export interface Rotated {
  readonly vaultFile: string;
  /** Undefined: the key comes from the environment, and the operator exchanges it there. */
  readonly keyFile: string | undefined;
  /** Seals whatever else is sealed with the master key anew; it may have been done before. */
  rewrap(rotation: Rotation): void;
}

/** What was just done; after each step a crash leaves everything readable with the key that is then in force. */
export type Step = "begun" | "rewrapped" | "replaced" | "ended";

/**
 * Exchanges the master key. The vault comes first, and from then on knows both keys, so that whoever opens it with
 * either one can finish. Throws VaultKeyMismatch.
 */
export function rotateKey(rotated: Rotated, { from, to }: Rotation, at: (step: Step) => void = () => {}): void {
  {
    using vault = openVault(rotated.vaultFile, from);
    keepStableKeys(vault, from);
    vault.beginRotation(to);
  }
  at("begun");
  finishRotation(rotated, from, at);
}

/**
 * Finishes a rotation that was begun, if there is one, and answers the key in force. A key from the environment stays
 * good until the service is started with the new one.
 */
export function finishRotation(rotated: Rotated, given: Uint8Array, at: (step: Step) => void = () => {}): Uint8Array {
  const { vaultFile, keyFile } = rotated;
  if (!existsSync(vaultFile)) return given;
  using vault = openVault(vaultFile, given);
  const rotation = vault.rotation();
  if (rotation === undefined) return given;
  rotated.rewrap(rotation);
  at("rewrapped");
  if (keyFile !== undefined) {
    replaceKeyFile(keyFile, rotation.to);
    at("replaced");
  }
  if (keyFile !== undefined || Buffer.from(given).equals(rotation.to)) {
    vault.endRotation();
    at("ended");
  }
  return rotation.to;
}
