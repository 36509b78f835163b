import { ServiceError } from "../platform/service-error.ts";

/** The vault is encrypted with another key than the one given. Ids tell keys apart and disclose nothing else of them. */
export function vaultKeyMismatch(file: string, given: string, encryptedWith: readonly string[]): ServiceError {
  const wanted = encryptedWith.length === 0 ? "another key" : `the key ${encryptedWith.join(" or ")}`;
  const remedy = "give the right one (REACHLOG_KEY or the key file)";
  return new ServiceError("configuration", `${file} was sealed with ${wanted}, not with ${given}: ${remedy}`);
}

/** The key is the right one, and yet something in the vault does not open: it was altered, or put back from before. */
export function vaultDamaged(file: string, what: string): ServiceError {
  const remedy = "the file was altered; restore it from a backup";
  return new ServiceError("damaged", `${file}: ${what} does not open with the right key: ${remedy}`);
}
