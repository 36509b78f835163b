import type { Report } from "./error.ts";

/**
 * A URL to which credentials will be sent. Plain http is taken only for this machine, because a token must
 * not travel in the clear; user names, fragments and, but for some webhooks, queries have no business in a configured
 * address.
 * Returns what paths are added to without a trailing slash, and an address that takes a query as it is. The value is
 * never repeated: a webhook's address is itself a secret.
 */
export function readUrl(variable: string, raw: string, report: Report, takes = { query: false }): string {
  const without = takes.query ? "user name or fragment" : "user name, query or fragment";
  const wanted = `an https:// URL without ${without} (http:// only to this machine)`;
  const url = parseHttpUrl(raw);
  if (url === undefined) {
    report.fault(variable, "not an http(s) URL", wanted);
    return raw;
  }
  if (url.username !== "" || url.password !== "") report.fault(variable, "holds a user name or a password", wanted);
  if ((url.search !== "" && !takes.query) || url.hash !== "")
    report.fault(variable, "holds a query or a fragment", wanted);
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    report.fault(variable, "plain http to another machine would expose the credentials", wanted);
  }
  return takes.query ? url.href : url.href.replace(/\/+$/, "");
}

/** http or https with a host and `//`, whose absence the URL parser would forgive. */
function isHttpUrl(raw: string): boolean {
  return /^https?:\/\/[^/\s]\S*$/i.test(raw) && URL.canParse(raw);
}

/** Undefined unless {@link isHttpUrl}. */
export function parseHttpUrl(raw: string): URL | undefined {
  return isHttpUrl(raw) ? new URL(raw) : undefined;
}

/** True for names and addresses that never leave this machine. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return bare === "localhost" || bare === "::1" || /^127(?:\.\d{1,3}){3}$/.test(bare);
}
