/** A map that forgets entries that were not used lately. */
export interface BoundedCache<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): void;
  clear(): void;
}

/**
 * Creates a cache of a young and an old generation, which keeps between half of `entriesMax` and `entriesMax` entries.
 * When the young generation holds half, it replaces the old one. A hit therefore need not reorder a list.
 */
export function createBoundedCache<Key, Value>(entriesMax: number): BoundedCache<Key, Value> {
  const generationMax = Math.ceil(entriesMax / 2);
  let young = new Map<Key, Value>();
  let old = new Map<Key, Value>();

  function set(key: Key, value: Value): void {
    young.set(key, value);
    if (young.size < generationMax) return;
    old = young;
    young = new Map();
  }

  return {
    get(key) {
      const value = young.get(key);
      if (value !== undefined) return value;
      const aged = old.get(key);
      if (aged !== undefined) set(key, aged);
      return aged;
    },
    set,
    clear() {
      young = new Map();
      old = new Map();
    },
  };
}
