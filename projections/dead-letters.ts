/**
 * Dead letters of one channel that are listed: the newest, so that a page of them costs no reading of all that was ever
 * given up and decided. {@link LETTERS_MAX} of them at the most; how many there are in all is counted beside.
 */
export interface DeadLetters {
  /** By the position of the event whose dispatch it is, the one given up last at the end. */
  listed: Map<number, LetterPlace>;
  /** Position of a retry -> position of the event it repeats, while the retry is pending. */
  taken_up: Map<number, number>;
}

/** Where the log says what else is known of a dead letter. */
export interface LetterPlace {
  /** Position of the event that gave it up. */
  position: number;
  /** Position of what requested the dispatch that was given up: of the event itself, or of the last retry. */
  requested_at: number;
}

/** Two hundred pages of a list, and half a megabyte of a snapshot. */
export const LETTERS_MAX = 10_000;

export const noDeadLetters = (): DeadLetters => ({ listed: new Map(), taken_up: new Map() });

/** `position`: of the event that gives these dispatches up. */
export function giveUp({ listed, taken_up }: DeadLetters, requested: readonly number[], position: number): void {
  for (const requested_at of requested) {
    const source = taken_up.get(requested_at) ?? requested_at;
    listed.set(source, { position, requested_at });
  }
  for (const oldest of listed.keys()) {
    if (listed.size <= LETTERS_MAX) break;
    listed.delete(oldest);
  }
}

export function takeUp({ listed, taken_up }: DeadLetters, source: number, retriedAt: number): void {
  listed.delete(source);
  taken_up.set(retriedAt, source);
}
