import { resolve } from "node:path";
import { logFiles } from "../log/log-files.ts";
import { decodeKey } from "../platform/decode-key.ts";
import { secret, type Secret } from "../platform/secret.ts";
import type { Report } from "./error.ts";

/** Where the event log lives. */
export interface LogConfig {
  readonly kind: "sqlite";
  /** As given: relative paths are relative to the working directory. */
  readonly file: string;
  /** The keys of personal data; undefined: beside the log. */
  readonly keysFile?: string;
}

const WANTED = "sqlite:PATH, such as sqlite:./data/reachlog.sqlite";

/** `sqlite:./a`, `sqlite:/a` and `sqlite:///a`. The URL may hold a password, so it is never repeated. */
export function readLog(raw: string, keysFile: string | undefined, report: Report): LogConfig {
  if (/^postgres(?:ql)?:/i.test(raw)) {
    report.fault("DATABASE_URL", "PostgreSQL is not supported yet by this version", WANTED);
  }
  const file = /^sqlite:(?:\/\/)?(.+)$/i.exec(raw)?.[1];
  if (file === undefined) {
    if (!/^postgres/i.test(raw)) report.fault("DATABASE_URL", "not the address of an event log", WANTED);
    return { kind: "sqlite", file: "" };
  }
  // A log in memory would lose what it acknowledged, and `?` starts options that nobody reads.
  if (file.includes(":memory:")) report.fault("DATABASE_URL", "a log in memory is lost with the process", WANTED);
  if (file.includes("?") || file.endsWith("/")) report.fault("DATABASE_URL", "not a plain file path", WANTED);
  const { keys: _, ...others } = logFiles(file);
  if (keysFile !== undefined && Object.values(others).some((other) => resolve(other) === resolve(keysFile))) {
    report.fault("KEYS_FILE", "that file belongs to the log and holds something else", "the path of a file of its own");
  }
  return { kind: "sqlite", file, ...(keysFile === undefined ? {} : { keysFile }) };
}

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
