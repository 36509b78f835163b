import type { KeyStore } from "./key-store.ts";

/** What is held of the keys is believed for so long: asking the store each time would cost more than encrypting. */
export const BELIEVED_MS = 50;

export interface Belief {
  /** Undefined: what is held is as the store had it at most {@link BELIEVED_MS} ago. Else it is once this resolves. */
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
  /** What was asked long before it was called for says nothing of what happened since. */
  const askSince = async (since: number): Promise<void> => {
    await askOnce();
    if (believedUntil <= since) await askSince(since);
  };
  return {
    renew() {
      const now = performance.now();
      if (believedUntil <= now) return askSince(now);
      // Whoever needs the answer asks once more, and meets with the fault.
      if (believedUntil - now < BELIEVED_MS / 2) askOnce().catch(() => {});
      return undefined;
    },
  };
}
