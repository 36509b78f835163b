/** Something that waits for its turn. */
interface Step {
  readonly owner: Owner;
  /** Not before this time; Infinity: only once `isDue` says so. */
  readonly at: number;
  readonly isDue: () => boolean;
  readonly take: () => Promise<void>;
}

/** A process, which takes steps. Those of a stopped one stay where they are. */
export interface Owner {
  isRunning(): boolean;
}

export interface Turn<T> {
  readonly owner: Owner;
  /** ms since the epoch; default now. */
  readonly at?: number;
  /** Ends the wait for `at` early. */
  readonly isDue?: () => boolean;
  readonly work: () => T | Promise<T>;
}

/**
 * Lets everything that several processes do happen one after the other, in an order that a seed decides, so that a
 * history can be repeated step by step. Time stands still while there is anything to do.
 */
export interface Clockwork {
  /** ms since the epoch, by a clock that is never wrong. */
  now(): number;
  /** Resolves with what `work` answers, once it was its turn. */
  turn<T>(turn: Turn<T>): Promise<T>;
  /** Drops what a dead process would still do. */
  forget(owner: Owner): void;
  /** So many steps, and fewer where that would take longer than `withinMs`. */
  steps(count: number, withinMs: number): Promise<void>;
  /** Lets so much time pass, with everything that happens in it. */
  pass(ms: number): Promise<void>;
}

/** More than any history takes: a loop that waits for nothing shall fail and not hang. */
const STEPS_MAX = 200_000;

/** `pick` chooses among what could happen next: 0 to below its argument. */
export function createClockwork(start: number, pick: (choices: number) => number): Clockwork {
  let now = start;
  let taken = 0;
  const waiting = new Set<Step>();

  const dueNow = (): Step[] =>
    [...waiting].filter((step) => step.owner.isRunning() && (step.at <= now || step.isDue()));

  /** False when no process has anything to do now. */
  const stepOnce = async (): Promise<boolean> => {
    await everybodyWaits();
    const due = dueNow();
    const step = due[due.length < 2 ? 0 : pick(due.length)];
    if (step === undefined) return false;
    if ((taken += 1) > STEPS_MAX) throw new Error(`no end after ${STEPS_MAX} steps`);
    waiting.delete(step);
    await step.take();
    return true;
  };

  const nextAt = (): number => {
    let next = Infinity;
    for (const { owner, at } of waiting) if (at < next && owner.isRunning()) next = at;
    return next;
  };

  const steps: Clockwork["steps"] = async (count, withinMs) => {
    const end = now + withinMs;
    for (let done = 0; done < count;) {
      if (await stepOnce()) {
        done += 1;
        continue;
      }
      const next = nextAt();
      now = Math.min(next, end);
      if (next > end) break;
    }
    await everybodyWaits();
  };

  return {
    now: () => now,
    turn: ({ owner, at = now, isDue = () => false, work }) =>
      new Promise((resolve, reject) => {
        const take = async (): Promise<void> => {
          try {
            resolve(await work());
          } catch (fault) {
            reject(fault instanceof Error ? fault : new Error(String(fault)));
          }
        };
        waiting.add({ owner, at, isDue, take });
      }),
    forget(owner) {
      for (const step of waiting) if (step.owner === owner) waiting.delete(step);
    },
    steps,
    pass: (ms) => steps(Infinity, ms),
  };
}

/** One turn of the event loop: by then every chain of promises has come to its next wait. */
function everybodyWaits(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A small generator (xorshift32); seed 0 always chooses what waited longest. */
export function createPick(seed: number): (choices: number) => number {
  let state = seed | 0;
  return (choices) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % choices;
  };
}
