import { decodeKey } from "../platform/decode-key.ts";
import { secret, type Secret } from "../platform/secret.ts";
import type { Report } from "./error.ts";

/** A master key as it is configured. */
export function readKey(
  variable: "REACHLOG_KEY" | "REACHLOG_KEY_NEXT",
  raw: string | undefined,
  report: Report,
): Secret | undefined {
  if (raw === undefined) return undefined;
  if (decodeKey(raw) === undefined) {
    report.fault(variable, "not a key of 32 bytes", "64 hex digits or base64 (openssl rand -base64 32)");
  }
  return secret(raw);
}
