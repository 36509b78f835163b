/** Address of a link, the same for every spelling that a click may use. */
export interface LinkAddress {
  /** Host and path that come before the link's code, such as `go.example` or `reach.example/l`. */
  readonly domain: string;
  readonly shortCode: string;
}

/**
 * Pattern of a domain that is already normalized. Nearly all clicks name their domain in this form, which needs no
 * further work.
 */
const PLAIN_DOMAIN = /^[a-z0-9-]+(?:\.[a-z0-9-]+)*(?::(?!0*(?:80|443)?(?:\/|$))\d+)?(?:\/[a-z0-9_-]+)*$/;
const PLAIN_CODE = /^[A-Za-z0-9_-]+$/;

/** Short code of a link without a path, which leads to the domain's first page. */
const ROOT = "/";

/**
 * Normalizes a link, so that all its spellings become one: lower-case host without default port and final dot, decoded
 * code without query, fragment and slashes around it. A normalized link stays as it is.
 */
export function normalizeLink(domain: string, shortCode: string): LinkAddress {
  if (PLAIN_DOMAIN.test(domain) && PLAIN_CODE.test(shortCode)) return { domain, shortCode };
  const normalized = normalizeDomain(domain);
  const [, ...path] = normalized.split("/");
  let code = normalizeCode(shortCode).split("/");
  while (path.length > 0 && code.length > path.length && path.every((segment, at) => segment === code[at])) {
    // The code repeats the domain's path, which is cut off. The rest is normalized again: a broken escape in the path
    // may have prevented its decoding.
    code = normalizeCode(code.slice(path.length).join("/")).split("/");
  }
  return { domain: normalized, shortCode: code.join("/") };
}

/** Normalizes the code of a link whose domain is known. */
export function normalizeCode(shortCode: string): string {
  if (PLAIN_CODE.test(shortCode)) return shortCode;
  // Cuts off host and query again after decoding, because the encoded part may have contained them.
  const segments = toSegments(toPath(decodeEscapes(toPath(shortCode))));
  return segments.length === 0 ? ROOT : segments.join("/");
}

/** Normalizes the domain of a link, including its path if it has one. */
export function normalizeDomain(domain: string): string {
  if (PLAIN_DOMAIN.test(domain)) return domain;
  const [address = ""] = domain
    .replace(/^\s*https?:\/\//i, "")
    .toLowerCase()
    .split(/[?#]/, 1);
  const [raw = "", ...path] = address.split("/");
  const host = raw.replace(/\s+/g, "");
  const name = host.replace(DOTS, "").replace(DEFAULT_PORT, "$1").replace(DOTS, "");
  return [name === "" ? host : name, ...toSegments(path.join("/"))].join("/");
}

const DOTS = /\.+$/;

/**
 * Matches a host with a default port of http or https, since a click does not say which scheme it used. An IPv6 address
 * is in brackets.
 */
const DEFAULT_PORT = /^(\[[^\]]*\]|[^:]+):(?:0*(?:80|443))?$/;

/**
 * Returns the host of a link without port and `www.`, in Punycode. Two links with the same result may still differ:
 * `www.` and the bare name can lead to different places.
 */
export function toLinkHost(domain: string): string {
  const [host = ""] = normalizeDomain(domain).split("/");
  const name = URL.parse(`http://${host}`)?.hostname ?? host.replace(/:\d*$/, "");
  return name.replace(DOTS, "").replace(/^www\./, "");
}

/** Splits a link, with or without a scheme, into domain and code. The code may contain slashes. */
export function splitLink(link: string): readonly [domain: string, shortCode: string] {
  const address = link.replace(/^\s*https?:\/\//i, "");
  const slash = address.indexOf("/");
  return slash === -1 ? [address, ""] : [address.slice(0, slash), address.slice(slash + 1)];
}

/** Returns the path of an address: removes scheme, host, query and fragment. */
function toPath(code: string): string {
  return code.replace(/^\s*https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/su, "");
}

function toSegments(path: string): readonly string[] {
  return path
    .split("/")
    .map((segment) => segment.trim())
    .filter((segment) => segment !== "");
}

/**
 * Escapes of a link's code that stay: a percent sign, since it would begin another escape, and control characters,
 * which no stream's name may contain.
 */
const KEPT_ESCAPES = /%(?:25|[01][0-9a-f]|7f|c2%[89][0-9a-f])/gi;

/** Decodes the escapes of a text; a text with broken escapes stays as it is. */
function decodeEscapes(code: string): string {
  if (!code.includes("%")) return code;
  try {
    return decodeURIComponent(code.replace(KEPT_ESCAPES, (escape) => escape.replaceAll("%", "%25")));
  } catch {
    return code;
  }
}
