/** The path as it was sent: from the first slash behind the host to the query. */
export function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return query === -1 ? url.slice(start) : url.slice(start, query);
}

/** What a path has in the place of each `:name` of an endpoint's, as it was sent; undefined: it is another path. */
export function segmentsOf(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const [names, sent] = [template.split("/"), path.split("/")];
  if (names.length !== sent.length) return undefined;
  const segments: Record<string, string> = {};
  for (const [at, name] of names.entries()) {
    const segment = sent[at] ?? "";
    if (name.startsWith(":") && segment !== "") segments[name.slice(1)] = segment;
    else if (name !== segment) return undefined;
  }
  return segments;
}

/** The same decoded; undefined: it is another path, or encodes no text. */
export function parametersOf(template: string, path: string): Readonly<Record<string, string>> | undefined {
  const segments = segmentsOf(template, path);
  if (segments === undefined) return undefined;
  try {
    return Object.fromEntries(Object.entries(segments).map(([name, segment]) => [name, decodeURIComponent(segment)]));
  } catch (fault) {
    if (fault instanceof URIError) return undefined;
    throw fault;
  }
}
