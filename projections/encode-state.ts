/**
 * Member name that marks a Map in the JSON of a state. A template field may have this name too, but contains text,
 * never a list.
 */
const MAP = "$map";

/** Member name that marks a Map without further Maps in its values. Decoding need not search these values. */
const PLAIN_MAP = "$plain_map";

/** Member name that marks a Map whose entries follow on separate lines; its value is the number of lines. */
const LINES = "$lines";

/** Maximum number of a Map's entries on one line of a snapshot: less than a millisecond's work. */
const LINE_ENTRIES = 256;

/** Encodes a state as text: JSON, with Maps as lists of entries in their own order. Equal states give equal texts. */
export function encodeState(state: unknown): string {
  return [...encodePieces(state)].join("");
}

/** Decodes a state that {@link encodeState} encoded. */
export function decodeState(text: string): unknown {
  const decoder = createStateDecoder();
  for (const line of text.split("\n")) decoder.add(line);
  return decoder.state();
}

/**
 * Yields the text of {@link encodeState} in pieces, so that other work can run between them; the state must not change
 * until the last piece. The first line has all but the entries of large Maps, which follow Map by Map.
 */
export function* encodePieces(state: unknown): Generator<string, void, void> {
  const large: ReadonlyMap<unknown, unknown>[] = [];
  yield JSON.stringify(withoutMaps(state, large));
  for (const map of large) for (const line of linesOf(map)) yield `\n${line}`;
}

function* linesOf(map: ReadonlyMap<unknown, unknown>): Generator<string, void, void> {
  let entries: (readonly [unknown, unknown])[] = [];
  for (const entry of map) {
    entries.push(entry);
    if (entries.length < LINE_ENTRIES) continue;
    yield JSON.stringify(entriesWithoutMaps(entries));
    entries = [];
  }
  if (entries.length > 0) yield JSON.stringify(entriesWithoutMaps(entries));
}

/** Decodes a state from its lines, in their order. */
export interface StateDecoder {
  add(line: string): void;
  /** Returns the decoded state; called after the last line. Throws if lines are missing. */
  state(): unknown;
}

export function createStateDecoder(): StateDecoder {
  const large: LargeMap[] = [];
  let first: { readonly state: unknown } | undefined;
  return {
    add(line) {
      const parsed: unknown = JSON.parse(line);
      if (first === undefined) {
        first = { state: withMaps(parsed, large) };
        return;
      }
      const [next] = large;
      const entries = entriesOf(parsed as Record<string, unknown>);
      if (next === undefined || entries === undefined) throw new Error("a state has fewer lines");
      // Taking each entry apart by a pattern would make a large state a tenth slower to decode.
      for (const entry of entries) next.map.set(entry[0], entry[1]);
      if (--next.lines === 0) large.shift();
    },
    state() {
      if (first === undefined || large.length > 0) throw new Error("a state has more lines");
      return first.state;
    },
  };
}

/** Map whose entries are still to be read, from `lines` lines. */
interface LargeMap {
  readonly map: Map<unknown, unknown>;
  lines: number;
}

type Entries = Iterable<readonly [unknown, unknown]>;

// The functions below walk through a state's values themselves: JSON would call a replacer or reviver for every value,
// and take several times as long.

/**
 * Replaces each Map in a state by a list of its entries, and copies only the objects that contain a Map. If `large` is
 * given, the entries of large Maps are left out, and the Maps are added to `large`.
 */
function withoutMaps(value: unknown, large?: ReadonlyMap<unknown, unknown>[]): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Map) {
    if (large === undefined || value.size <= LINE_ENTRIES) return entriesWithoutMaps(value, large);
    large.push(value);
    return { [LINES]: Math.ceil(value.size / LINE_ENTRIES) };
  }
  const members = value as Record<string, unknown>;
  let copy: Record<string, unknown> | undefined;
  for (const key of Object.keys(members)) {
    const plain = withoutMaps(members[key], large);
    if (plain === members[key]) continue;
    copy ??= (Array.isArray(value) ? [...value] : { ...members }) as Record<string, unknown>;
    copy[key] = plain;
  }
  return copy ?? value;
}

function entriesWithoutMaps(map: Entries, large?: ReadonlyMap<unknown, unknown>[]): unknown {
  const entries: unknown[] = [];
  let isPlain = true;
  for (const [key, inner] of map) {
    const plain = withoutMaps(inner, large);
    isPlain &&= plain === inner;
    entries.push([key, plain]);
  }
  return { [isPlain ? PLAIN_MAP : MAP]: entries };
}

/**
 * Puts the Maps back into the parsed JSON of a state; those whose entries follow on separate lines are added to
 * `large`.
 */
function withMaps(value: unknown, large: LargeMap[] = []): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (const [index, inner] of value.entries()) value[index] = withMaps(inner, large);
    return value;
  }
  const members = value as Record<string, unknown>;
  const lines = members[LINES];
  if (typeof lines === "number") {
    const map = new Map<unknown, unknown>();
    large.push({ map, lines });
    return map;
  }
  const entries = entriesOf(members, large);
  if (entries !== undefined) return new Map(entries);
  for (const key of Object.keys(members)) {
    const inner = members[key];
    if (typeof inner === "object" && inner !== null) members[key] = withMaps(inner, large);
  }
  return members;
}

/** Returns the entries of a Map in parsed JSON; undefined if the object is no Map. */
function entriesOf(members: Record<string, unknown>, large?: LargeMap[]): [unknown, unknown][] | undefined {
  const plain = members[PLAIN_MAP];
  if (Array.isArray(plain)) return plain as [unknown, unknown][];
  const entries = members[MAP];
  return Array.isArray(entries) ? (withMaps(entries, large) as [unknown, unknown][]) : undefined;
}
