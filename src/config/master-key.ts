import { decodeKey } from "../platform/decode-key.ts";
import { secret, type Secret } from "../platform/secret.ts";
import type { Report } from "./error.ts";
import type { LogConfig } from "./log.ts";

/** A master key as it is configured. */
export function readKey(
  variable: "REACHLOG_KEY" | "REACHLOG_KEY_NEXT",
  raw: string | undefined,
  report: Report,
): Secret | undefined {
  if (raw === undefined) return undefined;
  if (decodeKey(raw) === undefined) report.fault(variable, "not a key of 32 bytes", WANTED_OF_KEYS);
  return secret(raw);
}

/** No instance has a file that all others have. */
export function wantKey(log: LogConfig, key: Secret | undefined, report: Report): void {
  if (log.kind === "sqlite" || key !== undefined) return;
  report.fault("REACHLOG_KEY", "missing, and beside a log on PostgreSQL there is no key file", WANTED_OF_KEYS);
}

const WANTED_OF_KEYS = "64 hex digits or base64 (openssl rand -base64 32)";
