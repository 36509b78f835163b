import { resolve } from "node:path";
import { logFiles } from "../log/log-files.ts";
import { decodeKey } from "../platform/decode-key.ts";
import { secret, type Secret } from "../platform/secret.ts";
import type { Report } from "./error.ts";
import { isLoopback } from "./urls.ts";

/** Where the event log lives, and with which engine. */
export type LogConfig = SqliteLog | PostgresLog;

export interface SqliteLog {
  readonly kind: "sqlite";
  /** As given: relative paths are relative to the working directory. */
  readonly file: string;
  /** The keys of personal data; undefined: beside the log. */
  readonly keysFile?: string;
}

/** On a database server, which any number of instances share. */
export interface PostgresLog {
  readonly kind: "postgres";
  /** Holds the password. */
  readonly url: Secret;
  /** How messages call it: without user and password. */
  readonly shown: string;
}

const WANTED = "sqlite:PATH, such as sqlite:./data/reachlog.sqlite, or postgres://USER:PASSWORD@HOST/DATABASE";

/** `sqlite:./a`, `sqlite:/a`, `sqlite:///a` or a URL of PostgreSQL, which may hold a password and is never repeated. */
export function readLog(raw: string, keysFile: string | undefined, report: Report): LogConfig {
  if (/^postgres(?:ql)?:/i.test(raw)) return readPostgres(raw, keysFile, report);
  const file = /^sqlite:(?:\/\/)?(.+)$/i.exec(raw)?.[1];
  if (file === undefined) {
    report.fault("DATABASE_URL", "not the address of an event log", WANTED);
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

const WANTED_OF_POSTGRES = "postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full";

function readPostgres(raw: string, keysFile: string | undefined, report: Report): PostgresLog {
  const fault = (problem: string): void => report.fault("DATABASE_URL", problem, WANTED_OF_POSTGRES);
  if (keysFile !== undefined) {
    report.fault("KEYS_FILE", "set beside a log on PostgreSQL, which keeps these keys itself", "no value");
  }
  const url = /^\w+:\/\/[^/]/.test(raw) ? URL.parse(raw) : null;
  if (url === null) {
    fault("not the URL of a database");
    return { kind: "postgres", url: secret(raw), shown: "" };
  }
  const { hostname, host, pathname, searchParams, hash } = url;
  if (pathname.length < 2) fault("names no database");
  if (hash !== "" || [...searchParams.keys()].some((name) => name !== "sslmode")) {
    fault("holds a parameter other than sslmode");
  }
  // Anything less takes whatever server answers, and gives it the password.
  if (!isLoopback(hostname) && searchParams.get("sslmode") !== "verify-full") {
    fault("a server that is not this machine wants sslmode=verify-full");
  }
  return { kind: "postgres", url: secret(raw), shown: `postgres://${host}${pathname}` };
}

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
