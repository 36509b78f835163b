/** Marks a Map in the JSON of a state. A template field may have this name too, but holds text, never a list. */
const MAP = "$map";

/** Marks a Map in whose values there are no others: they need not be walked through again. */
const PLAIN_MAP = "$plain_map";

/** A state as text: JSON, with Maps as lists of entries in their own order. Equal states give equal texts. */
export function encodeState(state: unknown): string {
  return JSON.stringify(withoutMaps(state));
}

/** The reverse of {@link encodeState}. */
export function decodeState(text: string): unknown {
  return withMaps(JSON.parse(text));
}

// Walks of our own: a replacer or reviver is called for every value, and takes several times as long.

/** Copies only what holds a Map. */
function withoutMaps(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Map) {
    const entries: unknown[] = [];
    let isPlain = true;
    for (const [key, inner] of value) {
      const plain = withoutMaps(inner);
      isPlain &&= plain === inner;
      entries.push([key, plain]);
    }
    return { [isPlain ? PLAIN_MAP : MAP]: entries };
  }
  const members = value as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(members)) {
    const plain = withoutMaps(members[key]);
    if (plain === members[key]) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...members }) as Record<string, unknown>;
    copy[key] = plain;
  }
  return copy ?? value;
}

/** Puts the Maps back into what was just parsed. */
function withMaps(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (const [index, inner] of value.entries()) value[index] = withMaps(inner);
    return value;
  }
  const members = value as Record<string, unknown>;
  const plain = members[PLAIN_MAP];
  if (Array.isArray(plain)) return new Map(plain as [unknown, unknown][]);
  for (const key of Object.keys(members)) {
    const inner = members[key];
    if (typeof inner === "object" && inner !== null) members[key] = withMaps(inner);
  }
  const entries = members[MAP];
  return Array.isArray(entries) ? new Map(entries as [unknown, unknown][]) : value;
}
