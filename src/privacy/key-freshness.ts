import type { KeyStore } from "./key-store.ts";

/** What is cached of the keys is fresh for so long: asking the store each time would cost more than encrypting. */
export const FRESH_MS = 50;

export interface KeyFreshness {
  /**
   * Undefined: what is cached is as the store had it at most {@link FRESH_MS} ago. Else it is once this resolves; rejects
   * with what the store throws.
   */
  revalidate(): Promise<void> | undefined;
  /** Keys may have been deleted: what is cached is fresh again once the store was asked after this. */
  invalidate(): void;
}

/**
 * Asks the store whether another process has changed keys, and calls `refresh` then. A frequent caller never waits: the
 * store is asked again before the last answer is too old.
 */
export async function trackFreshness(keys: Pick<KeyStore, "revision">, refresh: () => void): Promise<KeyFreshness> {
  let seen = await keys.revision();
  /** How often the store was asked, and how often its answer was invalidated. */
  let [questions, invalidations] = [0, 0];
  /** The last question that was answered: its number, when it was asked, and how many invalidations came before it. */
  let answered = { number: 0, at: -Infinity, invalidations: 0 };
  let asking: Promise<void> | undefined;
  const freshUntil = (): number => (answered.invalidations === invalidations ? answered.at + FRESH_MS : -Infinity);
  const ask = async (): Promise<void> => {
    const question = { number: ++questions, at: performance.now(), invalidations };
    const revision = await keys.revision();
    if (revision !== seen) refresh();
    seen = revision;
    answered = question;
  };
  const askOnce = (): Promise<void> => (asking ??= ask().finally(() => (asking = undefined)));
  /** What was asked long before it was called for says nothing of what happened since. */
  const askSince = async (since: number, before: number): Promise<void> => {
    await askOnce();
    if (answered.number <= before && freshUntil() <= since) await askSince(since, before);
  };
  return {
    revalidate() {
      const now = performance.now();
      const left = freshUntil() - now;
      if (left <= 0) return askSince(now, questions);
      // A caller that needs the answer asks once more, and gets the fault.
      if (left < FRESH_MS / 2) askOnce().catch(() => {});
      return undefined;
    },
    invalidate() {
      invalidations++;
    },
  };
}
