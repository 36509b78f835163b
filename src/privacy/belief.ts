import type { KeyStore } from "./key-store.ts";

/** What is held of the keys is believed for so long: asking the store each time would cost more than encrypting. */
export const BELIEVED_MS = 50;

export interface Belief {
  /** Undefined: what is held is as the store had it a moment ago. Else it is once this resolves. */
  renew(): Promise<void> | undefined;
}

/**
 * Asks the store whether another process has changed keys, and calls `refresh` then. Whoever asks often never waits: the
 * store is asked again before the answer of before is too old.
 */
export async function startBelief(keys: Pick<KeyStore, "revision">, refresh: () => void): Promise<Belief> {
  let seen = await keys.revision();
  let believedUntil = -Infinity;
  let asking: Promise<void> | undefined;
  const ask = async (): Promise<void> => {
    const askedAt = performance.now();
    const revision = await keys.revision();
    if (revision !== seen) refresh();
    seen = revision;
    believedUntil = askedAt + BELIEVED_MS;
  };
  const askOnce = (): Promise<void> => (asking ??= ask().finally(() => (asking = undefined)));
  return {
    renew() {
      const left = believedUntil - performance.now();
      if (left <= 0) return askOnce();
      // Who needs the answer asks once more, and meets with the fault.
      if (left < BELIEVED_MS / 2) askOnce().catch(() => {});
      return undefined;
    },
  };
}
