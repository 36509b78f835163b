/** Marks a Map in the JSON of a state. A template field may have this name too, but holds text, never a list. */
const MAP = "$map";

/** A state as text: JSON, with Maps as lists of entries in their own order. Equal states give equal texts. */
export function encodeState(state: unknown): string {
  return JSON.stringify(state, (_key, value: unknown) => (value instanceof Map ? { [MAP]: [...value] } : value));
}

/** The reverse of {@link encodeState}. */
export function decodeState(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== "object" || value === null || !(MAP in value) || !Array.isArray(value[MAP])) return value;
    return new Map(value[MAP] as [unknown, unknown][]);
  });
}
