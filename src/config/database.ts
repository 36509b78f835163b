import { resolve } from "node:path";
import { urlsOf } from "eventstore-lite/postgres";
import { logFiles } from "../log/log-file-paths.ts";
import { isS3Address } from "../networks/s3/parse-address.ts";
import type { PostgresPlace } from "../log/store-backends.ts";
import { secret } from "../platform/secret.ts";
import type { Report } from "./configuration-error.ts";
import type { Environment } from "./schema.ts";
import { refuseShellPath } from "./environment.ts";
import { isLoopback } from "./check-urls-and-plain-http.ts";
import { omitUndefined } from "../platform/omit-undefined.ts";

export type LogConfig = SqliteLog | PostgresLog;

export interface SqliteLog {
  readonly kind: "sqlite";
  /** Absolute path of the log's SQLite file. */
  readonly file: string;
  /** Absolute path of the file with the keys of personal data. Undefined for the default one next to the log. */
  readonly keysFile?: string;
  /** Folder or S3 address of archived segments. Undefined if they are next to the log. */
  readonly archive?: string;
}

/** A log on a database server, which any number of instances share. */
export interface PostgresLog extends PostgresDatabase {
  readonly kind: "postgres";
  /** Database with the keys of personal data: the log's database, unless KEYS_DATABASE_URL names another one. */
  readonly keys: PostgresDatabase;
  /** Folder or S3 address of archived segments. Undefined if none is configured, so that nothing can be archived. */
  readonly archive?: string;
}

interface PostgresDatabase {
  readonly url: PostgresPlace["url"];
  readonly shown: string;
}

/** Returns the log's file, or its database URL without user and password, for messages. */
export function redactedUrl(log: LogConfig): string {
  return log.kind === "sqlite" ? log.file : log.shown;
}

const WANTED = "sqlite:PATH, such as sqlite:./data/reachlog.sqlite, or postgres://USER:PASSWORD@HOST/DATABASE";

/** Settings that place the keys of personal data, or archived segments, outside of the log's own file or database. */
type Elsewhere = Pick<Environment, "KEYS_FILE" | "KEYS_DATABASE_URL" | "ARCHIVE_FOLDER" | "ARCHIVE_AFTER_DAYS">;

/**
 * Reads where the log is: `sqlite:./a`, `sqlite:/a`, `sqlite:///a` or a URL of PostgreSQL, which may hold a password
 * and is never repeated.
 */
export function readLog(raw: string, elsewhere: Elsewhere, report: Report): LogConfig {
  if (/^postgres(?:ql)?:/i.test(raw)) return readPostgresLog(raw, elsewhere, report);
  const { KEYS_FILE: keysFile, KEYS_DATABASE_URL, ARCHIVE_FOLDER: segments } = elsewhere;
  if (KEYS_DATABASE_URL !== undefined) {
    report.fault(
      "KEYS_DATABASE_URL",
      "has no effect on a log in a file: KEYS_FILE puts its keys elsewhere",
      "no value",
    );
  }
  const file = /^sqlite:(?:\/\/)?(.+)$/i.exec(raw)?.[1];
  if (file === undefined) {
    report.fault("DATABASE_URL", "not the address of an event log", WANTED);
    return { kind: "sqlite", file: "" };
  }
  // A log in memory would lose what it has acknowledged, and options after a `?` are not supported.
  if (file.includes(":memory:")) report.fault("DATABASE_URL", "a log in memory is lost with the process", WANTED);
  if (file.includes("?") || file.endsWith("/")) report.fault("DATABASE_URL", "not a plain file path", WANTED);
  refuseShellPath("DATABASE_URL", file, report);
  if (keysFile !== undefined) refuseShellPath("KEYS_FILE", keysFile, report);
  const { keys: _, ...others } = logFiles(file);
  if (keysFile !== undefined && Object.values(others).some((other) => resolve(other) === resolve(keysFile))) {
    report.fault("KEYS_FILE", "that file belongs to the log and holds something else", "the path of a separate file");
  }
  return {
    kind: "sqlite",
    file: resolve(file),
    ...omitUndefined({ keysFile: keysFile && resolve(keysFile), archive: readSegments(segments, report) }),
  };
}

/** Reads where archived segments are: resolves the path of a folder; an S3 address stays as it is. */
function readSegments(place: string | undefined, report: Report): string | undefined {
  if (place === undefined || isS3Address(place)) return place;
  refuseShellPath("ARCHIVE_FOLDER", place, report);
  return resolve(place);
}

function readPostgresLog(raw: string, elsewhere: Elsewhere, report: Report): PostgresLog {
  const { KEYS_FILE, KEYS_DATABASE_URL, ARCHIVE_FOLDER: segments, ARCHIVE_AFTER_DAYS } = elsewhere;
  if (ARCHIVE_AFTER_DAYS !== undefined && segments === undefined) {
    const problem = "missing: a log on PostgreSQL has no folder for segments";
    report.fault("ARCHIVE_FOLDER", problem, "a folder that all instances share, or s3://BUCKET/PREFIX");
  }
  if (KEYS_FILE !== undefined) {
    const problem = "has no effect on a log on PostgreSQL: KEYS_DATABASE_URL puts its keys elsewhere";
    report.fault("KEYS_FILE", problem, "no value");
  }
  const log = readPostgres("DATABASE_URL", raw, report);
  const keys = KEYS_DATABASE_URL === undefined ? log : readPostgres("KEYS_DATABASE_URL", KEYS_DATABASE_URL, report);
  return { kind: "postgres", ...log, keys, ...omitUndefined({ archive: readSegments(segments, report) }) };
}

/**
 * Parameters that a PostgreSQL URL may have. `sslrootcert` names the certificate file of an authority that is not
 * generally trusted.
 */
const PARAMETERS = ["sslmode", "sslrootcert"];

const WANTED_OF_POSTGRES = "postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full";

function readPostgres(variable: "DATABASE_URL" | "KEYS_DATABASE_URL", raw: string, report: Report): PostgresDatabase {
  const fault = (problem: string): void => report.fault(variable, problem, WANTED_OF_POSTGRES);
  const servers = /^postgres(?:ql)?:\/\/[^/]/i.test(raw) ? urlsOf(raw) : undefined;
  const [url] = servers ?? [];
  if (servers === undefined || url === undefined) {
    fault("not the URL of a database");
    return { url: secret(raw), shown: "" };
  }
  const { pathname, searchParams, hash } = url;
  if (pathname.length < 2) fault("names no database");
  // Messages show the name of the database. If a password contains a slash, the text after it would be taken for that
  // name, and be shown.
  if (/[/@]/.test(pathname.slice(1)))
    fault("holds a slash or an @ that is not part of it: in a password they are %2F and %40");
  if (hash !== "" || [...searchParams.keys()].some((name) => !PARAMETERS.includes(name))) {
    fault(`holds a parameter other than ${PARAMETERS.join(" and ")}`);
  }
  // In any other mode than `verify-full`, the password would be sent to whichever server answers. Only a server on this
  // machine may have such a mode.
  if (!servers.every(({ hostname }) => isLoopback(hostname)) && searchParams.get("sslmode") !== "verify-full") {
    fault("a server on another machine needs sslmode=verify-full");
  }
  return { url: secret(raw), shown: `postgres://${servers.map(({ host }) => host).join()}${pathname}` };
}
