import { isIP, isIPv6 } from "node:net";
import { resolve } from "node:path";
import { commaList, given, shown, type RawEnvironment } from "./environment.ts";
import type { Report } from "./error.ts";
import type { ReadTextFile } from "./outreach.ts";
import type { Environment } from "./schema.ts";
import { readTokens, readTokenLines, type ApiToken } from "./tokens.ts";
import { isLoopback, parseHttpUrl } from "./urls.ts";

export interface HttpConfig {
  readonly host: string;
  /** 0: any free port, known once the service listens. */
  readonly port: number;
  /** Lower case, with the port where one was given. */
  readonly allowedHosts: readonly string[];
  /** An origin without a trailing slash. */
  readonly publicUrl: string;
  readonly authPolicy: "spec" | "strict";
  readonly openRoutes: readonly string[];
  /** All tokens as they were when the configuration was read. */
  readonly tokens: readonly ApiToken[];
  /** Where those of `tokens` come from that can be exchanged while the service runs; `fixed` are the others. */
  readonly tokensFile: { readonly path: string; readonly fixed: readonly ApiToken[] } | undefined;
  /** Addresses and networks whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  readonly rateLimitPerMinute: number;
  readonly shutdownSeconds: number;
}

/** The paths of the service, as far as `OPEN_ROUTES` is concerned. */
export interface RoutePaths {
  /** What may be opened. Those that are open anyway may be named too, without effect. */
  readonly openable: readonly string[];
  /** These want a token under every policy. */
  readonly guarded: readonly string[];
}

const HOST_ENTRY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

export function readHttp(
  values: Environment,
  env: RawEnvironment,
  readFile: ReadTextFile,
  paths: (() => RoutePaths) | undefined,
  report: Report,
): HttpConfig {
  const fixed = readTokens(values.API_TOKENS, report);
  const path = values.API_TOKENS_FILE;
  const authPolicy = values.AUTH_POLICY ?? (isLoopback(values.HOST) ? "spec" : "strict");
  const publicUrl = readPublicUrl(values, report);
  const hasToken = given(env, "API_TOKENS") !== undefined || given(env, "API_TOKENS_FILE") !== undefined;
  checkPolicy({ policy: authPolicy, hasToken }, values, env, report);
  warnOfProxied({ policy: authPolicy, hasToken }, publicUrl, values, report);
  return {
    host: values.HOST,
    port: values.PORT,
    allowedHosts: readAllowedHosts(values.ALLOWED_HOSTS, report),
    publicUrl,
    authPolicy,
    openRoutes: readOpenRoutes(values.OPEN_ROUTES, authPolicy, paths, report),
    tokens: path === undefined ? fixed : [...fixed, ...readTokensFile(path, fixed, readFile, report)],
    tokensFile: path === undefined ? undefined : { path, fixed },
    trustedProxies: readTrustedProxies(values.TRUSTED_PROXIES, report),
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE,
    shutdownSeconds: values.SHUTDOWN_SECONDS,
  };
}

function readTokensFile(path: string, fixed: readonly ApiToken[], readFile: ReadTextFile, report: Report): ApiToken[] {
  try {
    return readTokenLines(readFile(path), fixed, report);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    const wanted = "the path of a readable text file (reachlog token new NAME --add makes it)";
    report.fault("API_TOKENS_FILE", `${JSON.stringify(resolve(path))} cannot be read${code}`, wanted);
    return [];
  }
}

/** Whether something was given is asked of the raw environment: a faulty token is listed once, not as missing too. */
function checkPolicy(
  { policy, hasToken }: { readonly policy: "spec" | "strict"; readonly hasToken: boolean },
  values: Environment,
  env: RawEnvironment,
  report: Report,
): void {
  const why =
    values.AUTH_POLICY === "strict" ? "AUTH_POLICY is strict" : `HOST ${values.HOST} can be reached by others`;
  if (policy === "strict" && !hasToken) {
    report.fault(
      "API_TOKENS",
      `missing, but ${why}`,
      "at least one name:sha256:hex (reachlog token new NAME makes a token)",
    );
  }
  if (policy === "strict" && given(env, "X_CLIENT_ID") !== undefined && given(env, "X_ACCOUNT") === undefined) {
    report.fault(
      "X_ACCOUNT",
      `missing, but ${why}`,
      "the handle that may authorize, so that no stranger can claim the service",
    );
  }
  if (policy === "spec" && !hasToken) {
    report.warn("API_TOKENS is not set: /api/tracking/test and /api/messaging answer 401 to all callers.");
  }
  if (policy === "spec" && !isLoopback(values.HOST)) {
    report.warn(
      `AUTH_POLICY=spec on ${values.HOST}: every caller that reaches it may start runs and record clicks without a token${hasToken ? "" : ", and read the console, the log and all personal data in it"}.`,
    );
  }
}

/** Bound to loopback, the policy is `spec`: right for operators on this machine, not behind a proxy of it. */
function warnOfProxied(
  { policy, hasToken }: { readonly policy: "spec" | "strict"; readonly hasToken: boolean },
  publicUrl: string,
  values: Environment,
  report: Report,
): void {
  const host = parseHttpUrl(publicUrl)?.hostname ?? "";
  const isPublic = values.PUBLIC_URL !== undefined && !isLoopback(host);
  if (policy === "strict" || !isLoopback(values.HOST) || !(isPublic || values.TRUSTED_PROXIES !== undefined)) return;
  report.warn(
    `AUTH_POLICY is spec, and a proxy in front lets others in: every caller that reaches it may start runs and record clicks without a token${hasToken ? "" : ", and read the console, the log and all personal data in it"}. AUTH_POLICY=strict asks all of them for one.`,
  );
}

function readAllowedHosts(raw: string | undefined, report: Report): string[] {
  // An address as a pod is told its own, without the brackets of a Host header.
  const bracketed = (host: string) => (isIPv6(host) ? parseHttpUrl(`http://[${host}]`)?.hostname : undefined);
  const hosts = commaList(raw).map((host) => bracketed(host) ?? host.toLowerCase());
  for (const host of hosts.filter((entry) => !HOST_ENTRY.test(entry))) {
    report.fault(
      "ALLOWED_HOSTS",
      `${shown(host)} is not a host`,
      "host names such as reach.example or 10.0.0.5:8080 (no scheme, no *)",
    );
  }
  return hosts;
}

function readPublicUrl(values: Environment, report: Report): string {
  if (values.PUBLIC_URL === undefined) return defaultPublicUrl(values, report);
  const url = parseHttpUrl(values.PUBLIC_URL);
  if (url === undefined || url.username !== "" || url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    report.fault(
      "PUBLIC_URL",
      "not a plain origin",
      "http(s)://host or http(s)://host:port, without path, query or user name",
    );
    return "";
  }
  if (url.protocol === "https:" && values.TRUSTED_PROXIES === undefined) {
    report.warn(
      "PUBLIC_URL is https, so a proxy is asked first: without TRUSTED_PROXIES all its callers count as one address. They " +
        "share RATE_LIMIT_PER_MINUTE, and after ten wrong tokens a minute further wrong ones get 429. A valid token always passes.",
    );
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    report.warn("PUBLIC_URL is plain http: API tokens and session cookies travel in the clear.");
  }
  return url.origin;
}

function defaultPublicUrl(values: Environment, report: Report): string {
  const wildcard = values.HOST === "0.0.0.0" || values.HOST === "::";
  if (wildcard && values.X_CLIENT_ID !== undefined) {
    report.warn(
      `PUBLIC_URL is not set: X would send people back to ${values.HOST}, which is no address of this machine.`,
    );
  }
  const host = values.HOST.includes(":") ? `[${values.HOST}]` : values.HOST;
  return `http://${host}:${values.PORT}`;
}

/** `paths` undefined: they are taken as they are. */
function readOpenRoutes(
  raw: string | undefined,
  policy: "spec" | "strict",
  paths: (() => RoutePaths) | undefined,
  report: Report,
): string[] {
  const routes = commaList(raw);
  if (paths !== undefined && routes.length > 0) checkOpenRoutes(routes, paths(), report);
  if (routes.length > 0 && policy === "spec") report.warn("OPEN_ROUTES has no effect with AUTH_POLICY=spec.");
  return routes;
}

function checkOpenRoutes(routes: readonly string[], { openable, guarded }: RoutePaths, report: Report): void {
  for (const route of routes) {
    if (guarded.includes(route)) {
      report.fault("OPEN_ROUTES", `${route} always needs a token`, "routes that do not");
    } else if (!openable.includes(route)) {
      report.fault("OPEN_ROUTES", `${shown(route)} is no route that can be opened`, `some of ${openable.join(", ")}`);
    }
  }
}

function readTrustedProxies(raw: string | undefined, report: Report): string[] {
  const proxies = commaList(raw);
  for (const entry of proxies.filter((proxy) => !isAddressOrNetwork(proxy))) {
    const wanted = "IP addresses or networks such as 127.0.0.1 or 10.0.0.0/8, separated by commas";
    report.fault("TRUSTED_PROXIES", `${shown(entry)} is no address`, wanted);
  }
  return proxies;
}

function isAddressOrNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/** Whether nothing that is configured lets others reach the service: neither its address, nor a proxy, nor a name. */
export function isOfThisMachineOnly({ host, publicUrl, allowedHosts, trustedProxies }: HttpConfig): boolean {
  const names = [new URL(publicUrl).host, ...allowedHosts];
  return (
    isLoopback(host) && trustedProxies.length === 0 && names.every((name) => isLoopback(name.replace(/:\d+$/, "")))
  );
}
