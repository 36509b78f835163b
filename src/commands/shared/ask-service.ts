import type { Config } from "../../config/config.ts";
import { redactedUrl } from "../../config/database.ts";
import { fingerprintLog } from "../../log/log-fingerprint.ts";
import {
  createSafeFetch,
  EXPECTED_BYTES_MAX,
  JSON_BODY,
  type NetworkAnswer,
  type SafeRequest,
  NetworkFault,
} from "../../networks/safe-fetch.ts";
import { ServiceError, usageError } from "../../platform/service-error.ts";
import { locateLog } from "../../privacy/locate-log.ts";
import { readConfig } from "./command.ts";
import { type Terminal, printable } from "./terminal-answers-and-exit-codes.ts";

/** The option `--url`, for commands whose work only a running service can do. */
export const URL_OPTION = [
  "--url <url>",
  "the service's URL, even if it serves another log; default: the address in this configuration",
] as const;

export const TOKEN_HELP = "If the service needs a token, set REACHLOG_TOKEN to it.";

/** Maximum time in ms to wait for the service's answer: longer than a dry run that reads many pages of a network. */
const ASK_MS_MAX = 900_000;

/**
 * Posts `body` to the running service, and returns its parsed answer. Throws a ServiceError: `unavailable` if no
 * service answers; `rejected`, with the service's own words, if it refuses.
 */
export async function askService(terminal: Terminal, url: string | undefined, path: string, body: object) {
  const config = readConfig(terminal);
  if (url === undefined) await requireOwnLog(config, await readReadiness(terminal, toServiceUrl(config)));
  const answer = await ask(url ?? toServiceUrl(config), path, {
    method: "POST",
    headers: { ...JSON_BODY, ...(config.token && { authorization: `Bearer ${config.token.reveal()}` }) },
    body: JSON.stringify(body),
    timeoutMs: ASK_MS_MAX,
    signal: terminal.signal,
    answerBytesMax: EXPECTED_BYTES_MAX,
  });
  if (answer.status >= 300) throw new ServiceError("rejected", describeRefusal(answer.status, answer.text));
  return JSON.parse(answer.text) as unknown;
}

/** The running service's answer to `GET /readyz`. */
export interface Readiness {
  /** Fingerprint of the log that the running service serves. */
  readonly log: string;
  readonly status: "ok" | "unavailable";
  readonly checks: Readonly<Record<string, boolean>>;
}

/** Maximum time in ms to wait for the service's readiness, because a health check must be fast. */
const READY_MS_MAX = 4_000;

/** Asks the running service whether it is ready. Throws a ServiceError (unavailable) if no service answers. */
export async function askReadiness(terminal: Terminal, url: string | undefined): Promise<Readiness> {
  if (url !== undefined) return readReadiness(terminal, url);
  const config = readConfig(terminal);
  const readiness = await readReadiness(terminal, toServiceUrl(config));
  await requireOwnLog(config, readiness);
  return readiness;
}

async function readReadiness({ signal }: Terminal, url: string): Promise<Readiness> {
  const { status, text } = await ask(url, "/readyz", { method: "GET", timeoutMs: READY_MS_MAX, signal });
  if (status !== 200 && status !== 503) throw new ServiceError("rejected", describeRefusal(status, text));
  return JSON.parse(text) as Readiness;
}

/**
 * Throws a ServiceError (configuration) unless the running service serves the configured log. A service of another
 * installation may have this address, and a run would write to that one's recipients.
 */
async function requireOwnLog(config: Config, { log }: Readiness): Promise<void> {
  const own = await locateLog(config).store.identify();
  if (own !== undefined && fingerprintLog(own) === log) return;
  const url = toServiceUrl(config);
  throw new ServiceError(
    "configuration",
    `the service at ${url} serves another log than ${redactedUrl(config.log)}: ` +
      "correct PORT or DATABASE_URL, or name that service with --url if you mean it",
  );
}

async function ask(base: string, path: string, request: SafeRequest): Promise<NetworkAnswer> {
  if (!URL.canParse(base)) throw usageError(`${printable(base)} is not a URL`);
  return createSafeFetch({ allowedOrigins: [base] })(new URL(path, base).href, request).catch((fault: unknown) => {
    if (!(fault instanceof NetworkFault)) throw fault;
    const remedy = "start it with reachlog serve, or name it with --url";
    throw new ServiceError("unavailable", `no service answers at ${printable(base)} (${fault.message}): ${remedy}`);
  });
}

/** Returns the detail of the problem that the service answered, or a sentence that the answer is not from reachlog. */
function describeRefusal(status: number, text: string): string {
  if (status === 401 && text.includes("urn:reachlog:problem:unauthorized"))
    return "the service needs a token: set REACHLOG_TOKEN to one of its API tokens";
  try {
    const { detail } = JSON.parse(text) as { readonly detail?: unknown };
    if (typeof detail === "string") return printable(detail);
  } catch {
    // The answer is not JSON, so it is not from reachlog.
  }
  return `the answer, with status ${status}, is not from reachlog`;
}

/** Returns the URL of the configured service. If it listens on all addresses, the URL has the loopback address. */
function toServiceUrl({ http: { host, port } }: Config): string {
  const asked = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${asked.includes(":") ? `[${asked}]` : asked}:${port}`;
}
