/**
 * Prints the permissions that `reachlog serve` needs from Deno, with the settings that it would find here.
 * `deno task serve` also runs this alone before: its shell would start the service although a substitution failed.
 */
import { dirname, join, resolve } from "node:path";
import { urlsOf } from "eventstore-lite/postgres";
import { readConfig } from "../src/commands/shared/command.ts";
import { EXIT } from "../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { isS3Address } from "../src/networks/s3/parse-address.ts";
import type { Config } from "../src/config/config.ts";
import type { LogConfig } from "../src/config/database.ts";
import { listSettings } from "../src/config/named-webhooks.ts";
import { loadEnvFile } from "../src/config/load-env-file.ts";
import { outboundUrls } from "../src/service/connect-networks.ts";

const ROOT = join(import.meta.dirname, "..");

/** The ports of URLs that name none. */
const PORTS: Readonly<Record<string, string>> = {
  "http:": "80",
  "https:": "443",
  "postgres:": "5432",
  "postgresql:": "5432",
};

loadEnvFile();
console.log(flags().join(" "));

function flags(): readonly string[] {
  const named = [...listSettings(process.env)].flatMap((name) =>
    name.endsWith("_FILE") ? (process.env[name] ?? []) : [],
  );
  const config = configured();
  const authorities = config === undefined ? [] : authoritiesOf(config.log);
  const read = [ROOT, ".env", ...named, ...authorities].map((path) => resolve(path));
  // If the settings are invalid, the service only reads them, prints what is wrong and exits. It needs no right to
  // write files or to use the network for this.
  if (config === undefined) return ["--allow-env", list("read", read)];
  const { host, port } = config.http;
  const folders = foldersOf(config.log);
  const net = [
    `${host.includes(":") ? `[${host}]` : host}${port === 0 ? "" : `:${port}`}`,
    ...[...outboundUrls(config), ...databasesOf(config.log), ...collectorOf(config), ...storeOf(config)].map(addressOf),
  ];
  return [
    "--allow-env",
    list("net", net),
    list("read", [...read, ...folders]),
    // The service asks the system how full the disk with the log is, for a metric, and how long the machine has run, to
    // detect that it slept or that its clock jumped.
    ...(folders.length === 0 ? [] : [list("write", folders), "--allow-sys=statfs,osUptime"]),
  ];
}

/**
 * Returns the Deno flag that permits access to `values`. Prints an error and exits if a value has white space, at which
 * the shell would split it, or a comma, at which Deno would.
 */
function list(name: string, values: readonly string[]): string {
  for (const value of values) {
    const [separator] = /[\s,]/.exec(value) ?? [];
    if (separator === undefined) continue;
    const what = separator === "," ? "a comma" : "a space";
    console.error(
      `deno-permissions: ${JSON.stringify(value)} has ${what}, which ends a path in Deno's flags; ` +
        "name a path without spaces and commas",
    );
    process.exit(EXIT.config);
  }
  return `--allow-${name}=${values.join()}`;
}

function configured() {
  try {
    return readConfig({ env: process.env });
  } catch {
    return undefined;
  }
}

function foldersOf(log: LogConfig): readonly string[] {
  const segments = log.archive === undefined || isS3Address(log.archive) ? [] : [log.archive];
  if (log.kind !== "sqlite") return segments;
  return [...[log.file, log.keysFile ?? log.file].map((file) => dirname(file)), ...segments];
}

/** A URL may name several servers. */
function databasesOf(log: LogConfig): readonly URL[] {
  if (log.kind === "sqlite") return [];
  return [...new Set([log, log.keys].map(({ url }) => url.reveal()))].flatMap((url) => urlsOf(url) ?? []);
}

/**
 * Returns the paths of the certificate files (`sslrootcert`) with which the service verifies its databases. Leaves out
 * the value `system`, which names the system's certificates and is not a file.
 */
function authoritiesOf(log: LogConfig): readonly string[] {
  const named = databasesOf(log).flatMap(({ searchParams }) => searchParams.get("sslrootcert") ?? []);
  return [...new Set(named)].filter((name) => name !== "system");
}

function collectorOf({ tracing }: Config): readonly string[] {
  return tracing === undefined ? [] : [tracing.endpoint];
}

function storeOf({ objectStore }: Config): readonly string[] {
  return objectStore === undefined ? [] : [objectStore.endpoint];
}

function addressOf(url: string | URL): string {
  const { hostname, port, protocol } = new URL(url);
  return `${hostname}:${port === "" ? PORTS[protocol] : port}`;
}
