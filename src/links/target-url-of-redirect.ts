/** Maximum length of a short link's query that is handed on to the target. Nothing of a longer query is handed on. */
const QUERY_CHARS_MAX = 2_048;

/** Parameters that a redirect adds to its target. */
interface Additions {
  /** Query of the short link as it was opened, without `?`. */
  readonly query: string;
  /** Names of parameters in `query` that are handed on. One that ends with `*` is the beginning of a name. */
  readonly passQuery: readonly string[];
  /** Name of the parameter that tells the target the click's id; undefined to add none. */
  readonly clickParam: string | undefined;
  readonly clickId: string;
}

/**
 * Returns a link's target with these parameters at the end of its query. The target stays byte for byte, so a parameter
 * that it has already is not added.
 */
export function toRedirectUrl(target: string, { query, passQuery, clickParam, clickId }: Additions): string {
  const isPassing = passQuery.length > 0 && query !== "" && query.length <= QUERY_CHARS_MAX;
  if (!isPassing && clickParam === undefined) return target;
  const fragmentAt = target.indexOf("#");
  const page = fragmentAt === -1 ? target : target.slice(0, fragmentAt);
  const queryAt = page.indexOf("?");
  const own = queryAt === -1 ? undefined : new URLSearchParams(page.slice(queryAt));
  const passed = isPassing ? new URLSearchParams(query) : undefined;
  for (const name of new Set(passed?.keys())) {
    if (name === clickParam || !isNamed(name, passQuery) || own?.has(name) === true) passed?.delete(name);
  }
  // The click's id is added as it is, because neither it nor the parameter's name has a character to escape.
  const click = clickParam === undefined || own?.has(clickParam) === true ? "" : `${clickParam}=${clickId}`;
  const added = [passed?.toString() ?? "", click].filter((part) => part !== "").join("&");
  if (added === "") return target;
  const joint = queryAt === -1 ? "?" : queryAt === page.length - 1 || page.endsWith("&") ? "" : "&";
  return page + joint + added + target.slice(page.length);
}

function isNamed(name: string, passQuery: readonly string[]): boolean {
  return passQuery.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one));
}
