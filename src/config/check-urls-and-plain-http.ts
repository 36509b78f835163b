import { BlockList, isIP } from "node:net";
import { quoteValue } from "./environment.ts";
import type { Report } from "./configuration-error.ts";

/**
 * Checks a URL to which credentials are sent. Plain http, which would show them, is accepted only for this machine and
 * PLAIN_HTTP_HOSTS. Faults never repeat the URL, because a webhook's URL is itself a secret.
 */
export function readUrl(
  variable: string,
  raw: string,
  report: Report,
  /**
   * Options of the check. `query`: true if the URL may have a query, as some webhooks' URLs do. Such a URL keeps a
   * slash at its end.
   */
  takes = { query: false },
): string {
  const without = takes.query ? "user name or fragment" : "user name, query or fragment";
  const wanted = `an https:// URL without ${without} (http:// only to this machine, or to a host of PLAIN_HTTP_HOSTS)`;
  const url = parseHttpUrl(raw);
  if (url === undefined) {
    report.fault(variable, "not an http(s) URL", wanted);
    return raw;
  }
  if (url.username !== "" || url.password !== "") report.fault(variable, "holds a user name or a password", wanted);
  if ((url.search !== "" && !takes.query) || url.hash !== "")
    report.fault(variable, "holds a query or a fragment", wanted);
  if (url.protocol === "http:" && !isLoopback(url.hostname) && !report.plainHttpHosts.has(url.hostname)) {
    report.fault(variable, "plain http to another machine would expose the credentials", wanted);
  }
  // Slashes at the end are removed, because callers append paths that begin with one.
  return takes.query ? url.href : url.href.replace(/\/+$/, "");
}

/** Private networks, in which an operator may allow plain http: RFC 1918, RFC 4193 and link-local addresses. */
const PRIVATE = new BlockList();
for (const [network, bits] of [
  ["10.0.0.0", 8],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["169.254.0.0", 16],
] as const)
  PRIVATE.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["fc00::", 7],
  ["fe80::", 10],
] as const)
  PRIVATE.addSubnet(network, bits, "ipv6");

/**
 * Allows plain http to hosts that the operator names. They must be private: names without dots, or addresses of private
 * networks.
 */
export function allowPlainHttp(list: string | undefined, report: Report): void {
  for (const entry of list?.split(",").map((one) => one.trim()) ?? []) {
    const host = URL.canParse(`http://${entry}`) ? new URL(`http://${entry}`).hostname : undefined;
    if (host !== undefined && host === entry.toLowerCase() && isOfOwnNetwork(host)) report.plainHttpHosts.add(host);
    else {
      const wanted = "names without dots such as collector, or private addresses, separated by commas";
      report.fault(
        "PLAIN_HTTP_HOSTS",
        `${quoteValue(entry)} is neither a name without dots nor a private address`,
        wanted,
      );
    }
  }
}

function isOfOwnNetwork(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const version = isIP(bare);
  if (version === 0) return !host.includes(".");
  return PRIVATE.check(bare, version === 4 ? "ipv4" : "ipv6");
}

/** True for an http or https URL with `//` and a host. The URL parser would accept one without `//`. */
function isHttpUrl(raw: string): boolean {
  return /^https?:\/\/[^/\s]\S*$/i.test(raw) && URL.canParse(raw);
}

/** Parses an http or https URL. Undefined unless {@link isHttpUrl} accepts it. */
export function parseHttpUrl(raw: string): URL | undefined {
  return isHttpUrl(raw) ? new URL(raw) : undefined;
}

/** True for names and addresses that mean this machine. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return bare === "localhost" || bare === "::1" || /^127(?:\.\d{1,3}){3}$/.test(bare);
}
