import { isIP, isIPv6 } from "node:net";
import { commaList, readNamedFile, readSetting, quoteValue, type Settings } from "./environment.ts";
import type { Report } from "./configuration-error.ts";
import type { Environment } from "./schema.ts";
import { readTokens, readTokenLines, warnOfScopeless } from "./parse-api-tokens.ts";
import { isLoopback, parseHttpUrl } from "./check-urls-and-plain-http.ts";

export type HttpConfig = ReturnType<typeof readHttp>;

/** Paths of the service: those that `OPEN_ROUTES` may open to callers without a token, and those that it may not. */
export interface RoutePaths {
  /** Paths that `OPEN_ROUTES` may open; naming one that is always open has no effect. */
  readonly openable: readonly string[];
  /** Paths that always need a token, so that `OPEN_ROUTES` may not name them. */
  readonly guarded: readonly string[];
}

type Policy = "spec" | "strict";

const HOST_ENTRY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;

/** Reads the configuration of the HTTP server. If `paths` is undefined, `OPEN_ROUTES` is not checked. */
export function readHttp(from: Settings, paths: (() => RoutePaths) | undefined) {
  const { values, env, report } = from;
  const fixed = readTokens(values.API_TOKENS, report);
  const path = values.API_TOKENS_FILE;
  const authPolicy: Policy = values.AUTH_POLICY ?? (isLoopback(values.HOST) ? "spec" : "strict");
  const publicUrl = readPublicUrl(values, report);
  // Looks at the raw settings, so that if a token is set but faulty, only its fault is reported, and not a missing
  // token too.
  const hasToken = readSetting(env, "API_TOKENS") !== undefined || readSetting(env, "API_TOKENS_FILE") !== undefined;
  const lines = path === undefined ? undefined : readNamedFile(from, "API_TOKENS_FILE", path, WANTED_TOKENS_FILE);
  const tokens = lines === undefined ? fixed : [...fixed, ...readTokenLines(lines, fixed, report)];
  warnOfScopeless(tokens, report);
  checkPolicy(authPolicy, hasToken, publicUrl, from);
  const allowedHosts = readAllowedHosts(values.ALLOWED_HOSTS, report);
  const openRoutes: readonly string[] = commaList(values.OPEN_ROUTES);
  if (paths !== undefined && openRoutes.length > 0) checkOpenRoutes(openRoutes, paths(), report);
  if (openRoutes.length > 0 && authPolicy === "spec") report.warn("OPEN_ROUTES has no effect with AUTH_POLICY=spec.");
  return {
    host: values.HOST,
    /** Port to listen on. 0 stands for any free port, which is known once the service listens. */
    port: values.PORT,
    /** Host names that requests may address, in lower case, with a port where the operator gave one. */
    allowedHosts,
    /** Origin at which people and networks reach the service, without a slash at the end. */
    publicUrl,
    authPolicy,
    openRoutes,
    /** All API tokens at the time when the configuration was read. */
    tokens,
    /** The file with API tokens that can be changed while the service runs. `fixed`: the tokens outside of the file. */
    tokensFile: path === undefined ? undefined : { path, fixed },
    /** Addresses and networks of proxies whose `X-Forwarded-For` header is trusted. */
    trustedProxies: readTrustedProxies(values.TRUSTED_PROXIES, report),
    rateLimitPerMinute: values.RATE_LIMIT_PER_MINUTE,
    shutdownSeconds: values.SHUTDOWN_SECONDS,
  };
}

const WANTED_TOKENS_FILE = "the path of a readable text file (reachlog token new NAME --add makes it)";

function checkPolicy(policy: Policy, hasToken: boolean, publicUrl: string, { values, env, report }: Settings): void {
  if (policy === "strict") {
    const why =
      values.AUTH_POLICY === "strict" ? "AUTH_POLICY is strict" : `HOST ${values.HOST} can be reached by others`;
    if (!hasToken) {
      const wanted = "at least one name:sha256:hex (reachlog token new NAME makes a token)";
      report.fault("API_TOKENS", `missing, but ${why}`, wanted);
    }
    if (readSetting(env, "X_CLIENT_ID") !== undefined && readSetting(env, "X_ACCOUNT") === undefined) {
      const wanted = "the handle that may authorize, so that no stranger can claim the service";
      report.fault("X_ACCOUNT", `missing, but ${why}`, wanted);
    }
    return;
  }
  if (!hasToken) report.warn("API_TOKENS is not set: /api/tracking/test and /api/messaging answer 401 to all callers.");
  const reads = hasToken ? "" : ", and read the console, the log and all personal data in it";
  const openness = `every caller that reaches it may start runs and record clicks without a token${reads}`;
  if (!isLoopback(values.HOST)) return report.warn(`AUTH_POLICY=spec on ${values.HOST}: ${openness}.`);
  // On a loopback address, AUTH_POLICY=spec admits callers on this machine without a token. If a proxy on this machine
  // forwards requests, this includes all callers of the proxy, so a public URL or trusted proxies lead to a warning.
  const isPublic = values.PUBLIC_URL !== undefined && !isLoopback(parseHttpUrl(publicUrl)?.hostname ?? "");
  if (!isPublic && values.TRUSTED_PROXIES === undefined) return;
  report.warn(
    `AUTH_POLICY is spec, and a proxy in front lets others in: ${openness}. AUTH_POLICY=strict requires a token from all of them.`,
  );
}

function readAllowedHosts(raw: string | undefined, report: Report): readonly string[] {
  // Kubernetes tells a pod its IPv6 address without the brackets that a Host header has, so they are added here.
  const bracketed = (host: string) => (isIPv6(host) ? parseHttpUrl(`http://[${host}]`)?.hostname : undefined);
  const hosts = commaList(raw).map((host) => bracketed(host) ?? host.toLowerCase());
  for (const host of hosts.filter((entry) => !HOST_ENTRY.test(entry))) {
    const wanted = "host names such as reach.example or 10.0.0.5:8080 (no scheme, no *)";
    report.fault("ALLOWED_HOSTS", `${quoteValue(host)} is not a host`, wanted);
  }
  return hosts;
}

function readPublicUrl(values: Environment, report: Report): string {
  if (values.PUBLIC_URL === undefined) return defaultPublicUrl(values, report);
  const url = parseHttpUrl(values.PUBLIC_URL);
  if (url === undefined || url.username !== "" || url.pathname !== "/" || url.search !== "" || url.hash !== "") {
    const wanted = "http(s)://host or http(s)://host:port, without path, query or user name";
    report.fault("PUBLIC_URL", "not a plain origin", wanted);
    return "";
  }
  if (url.protocol === "https:" && values.TRUSTED_PROXIES === undefined) {
    report.warn(
      "PUBLIC_URL is https, so a proxy is in front: without TRUSTED_PROXIES all its callers count as one address. They " +
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
    const address = `${values.HOST}, which is no address of this machine`;
    report.warn(`PUBLIC_URL is not set: X would send people back to ${address}.`);
  }
  const host = values.HOST.includes(":") ? `[${values.HOST}]` : values.HOST;
  return `http://${host}:${values.PORT}`;
}

function checkOpenRoutes(routes: readonly string[], { openable, guarded }: RoutePaths, report: Report): void {
  for (const route of routes) {
    if (guarded.includes(route)) {
      report.fault("OPEN_ROUTES", `${route} always needs a token`, "routes that do not");
    } else if (!openable.includes(route)) {
      report.fault(
        "OPEN_ROUTES",
        `${quoteValue(route)} is no route that can be opened`,
        `some of ${openable.join(", ")}`,
      );
    }
  }
}

function readTrustedProxies(raw: string | undefined, report: Report): readonly string[] {
  const proxies = commaList(raw);
  for (const entry of proxies.filter((proxy) => !isAddressOrNetwork(proxy))) {
    const wanted = "IP addresses or networks such as 127.0.0.1 or 10.0.0.0/8, separated by commas";
    report.fault("TRUSTED_PROXIES", `${quoteValue(entry)} is no address`, wanted);
  }
  return proxies;
}

function isAddressOrNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}

/**
 * True if no other machine can reach the service. The address that it listens on, its proxies and its host names tell.
 */
export function isOfThisMachineOnly({ host, publicUrl, allowedHosts, trustedProxies }: HttpConfig): boolean {
  const names = [new URL(publicUrl).host, ...allowedHosts];
  return (
    isLoopback(host) && trustedProxies.length === 0 && names.every((name) => isLoopback(name.replace(/:\d+$/, "")))
  );
}
