/** The vault is sealed with another key than the one given. Ids tell keys apart and tell nothing else of them. */
export class VaultKeyMismatch extends Error {
  override readonly name = "VaultKeyMismatch";
  constructor(file: string, given: string, sealedWith: readonly string[]) {
    const wanted = sealedWith.length === 0 ? "another key" : `the key ${sealedWith.join(" or ")}`;
    super(`${file} was sealed with ${wanted}, not with ${given}: give the right one (REACHLOG_KEY or the key file)`);
  }
}

/** The key is the right one, and yet something in the vault does not open: it was altered, or put back from before. */
export class VaultDamaged extends Error {
  override readonly name = "VaultDamaged";
  constructor(file: string, what: string) {
    super(`${file}: ${what} does not open with the right key: the file was altered; restore it from a backup`);
  }
}
