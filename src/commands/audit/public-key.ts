import type { KeyObject } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { parsePublicKey, SigningKeyRefused } from "eventstore-lite";
import { usageError } from "../command.ts";

/** The key given, as text or as a file of it. */
export function publicKeyOf(given: string | undefined): KeyObject | undefined {
  if (given === undefined) return undefined;
  try {
    return parsePublicKey(existsSync(given) ? readFileSync(given, "utf8").trim() : given);
  } catch (fault) {
    throw fault instanceof SigningKeyRefused ? usageError(`--public-key: ${fault.message}`) : fault;
  }
}
