import { existsSync } from "node:fs";
import { deriveKey } from "./key.ts";
import { openVault, type Vault } from "./vault.ts";

/**
 * What keyed marks are made with. They stand in the log for ever, so the key stays the same when the master key is
 * exchanged: its first value is derived from the master key of the time, and is kept in the vault from then on.
 */
const LASTING = ["suppression", "credentials"] as const;

export type StableKeyPurpose = (typeof LASTING)[number];

/** The lasting key as the vault keeps it; kept from now on where it was not yet. */
export function stableKey(vault: Vault, master: Uint8Array, purpose: StableKeyPurpose): Uint8Array {
  const name = `lasting/${purpose}`;
  const first = Buffer.from(deriveKey(master, purpose)).toString("base64");
  if (vault.get(name) === undefined) vault.put(name, first, 0);
  return new Uint8Array(Buffer.from(vault.get(name)?.value ?? first, "base64"));
}

/** Before the master key changes, nothing lasting may still depend on it. */
export function keepStableKeys(vault: Vault, master: Uint8Array): void {
  for (const purpose of LASTING) stableKey(vault, master, purpose);
}

/** The same for a command, which makes no vault: without one the master key is still the first. */
export function readStableKey(vaultFile: string, master: Uint8Array, purpose: StableKeyPurpose): Uint8Array {
  if (!existsSync(vaultFile)) return deriveKey(master, purpose);
  using vault = openVault(vaultFile, master);
  return stableKey(vault, master, purpose);
}
