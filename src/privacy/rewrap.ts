import { existsSync } from "node:fs";
import type { Rotation } from "../vault/vault.ts";
import { KeysFileMismatch, openKeysFile } from "./keys-file.ts";

/** Wraps the keys of personal data with a new master key, unless they are already. Throws KeysFileMismatch. */
export function rewrapKeys(keysFile: string, { from, to }: Rotation): void {
  if (!existsSync(keysFile)) return;
  try {
    using file = openKeysFile(keysFile, () => from);
    file.rewrap(to);
  } catch (fault) {
    if (!(fault instanceof KeysFileMismatch)) throw fault;
    openKeysFile(keysFile, () => to)[Symbol.dispose]();
  }
}
