/**
 * Whether a browser sends this for a page of another site (CSRF): a form or script anywhere can make it POST without a
 * body, and to this machine too. `Sec-Fetch-Site` says so; older browsers, and all over plain http but to this machine,
 * have only `Origin`. Programs send neither.
 */
export function isOfForeignSite({ headers }: Request, hosts: ReadonlySet<string>): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  const origin = headers.get("origin");
  if (origin === null) return false;
  return !URL.canParse(origin) || !hosts.has(new URL(origin).hostname);
}
