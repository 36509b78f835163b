import type { KeyStore } from "./key-store.ts";

/** What is held of the keys is believed for so long: asking the store each time would cost more than encrypting. */
export const BELIEVED_MS = 50;

export interface Belief {
  /** Undefined: what is held is as the store had it at most {@link BELIEVED_MS} ago. Else it is once this resolves. */
  renew(): Promise<void> | undefined;
  /** Keys may have been deleted: what is held is believed again once the store was asked after this. */
  doubt(): void;
}

/**
 * Asks the store whether another process has changed keys, and calls `refresh` then. Whoever asks often never waits: the
 * store is asked again before the answer of before is too old.
 */
export async function startBelief(keys: Pick<KeyStore, "revision">, refresh: () => void): Promise<Belief> {
  let seen = await keys.revision();
  /** How often the store was asked, and how often somebody doubted. */
  let [questions, doubts] = [0, 0];
  /** The last question that was answered: its number, when it was asked, and how many doubts there were then. */
  let answered = { number: 0, at: -Infinity, doubts: 0 };
  let asking: Promise<void> | undefined;
  const believedUntil = (): number => (answered.doubts === doubts ? answered.at + BELIEVED_MS : -Infinity);
  const ask = async (): Promise<void> => {
    const question = { number: ++questions, at: performance.now(), doubts };
    const revision = await keys.revision();
    if (revision !== seen) refresh();
    seen = revision;
    answered = question;
  };
  const askOnce = (): Promise<void> => (asking ??= ask().finally(() => (asking = undefined)));
  /** What was asked long before it was called for says nothing of what happened since. */
  const askSince = async (since: number, before: number): Promise<void> => {
    await askOnce();
    if (answered.number <= before && believedUntil() <= since) await askSince(since, before);
  };
  return {
    renew() {
      const now = performance.now();
      const left = believedUntil() - now;
      if (left <= 0) return askSince(now, questions);
      // Whoever needs the answer asks once more, and meets with the fault.
      if (left < BELIEVED_MS / 2) askOnce().catch(() => {});
      return undefined;
    },
    doubt() {
      doubts++;
    },
  };
}
