/** A step of a simulated process that waits for its turn. */
interface Step {
  readonly owner: Owner;
  /** Earliest time for the step, ms since the epoch; Infinity if only `isDue` makes it due. */
  readonly at: number;
  readonly isDue: () => boolean;
  readonly take: () => Promise<void>;
}

/** A simulated process that takes steps. The steps of a paused process wait until it runs again. */
export interface Owner {
  isRunning(): boolean;
}

export interface Turn<T> {
  readonly owner: Owner;
  /** Earliest time for the work, ms since the epoch; default now. */
  readonly at?: number;
  /** True as soon as the work may start, even if the time `at` has not come. */
  readonly isDue?: () => boolean;
  readonly work: () => T | Promise<T>;
}

/**
 * Runs the steps of several processes one at a time, in an order decided by a seed, so that a history can be repeated
 * exactly. Simulated time advances only when no step is due.
 */
export interface Clockwork {
  /** Returns the true time, ms since the epoch. The simulated clocks of processes may differ from it. */
  now(): number;
  /** Waits for a turn, does the work and resolves with its result. */
  turn<T>(turn: Turn<T>): Promise<T>;
  /** Drops the pending steps of a dead process. */
  forget(owner: Owner): void;
  /**
   * Lets the simulated processes take `count` steps, or fewer if they would need more than `withinMs` of simulated
   * time.
   */
  steps(count: number, withinMs: number): Promise<void>;
  /** Lets `ms` of simulated time pass; the processes take all steps that fall due. */
  pass(ms: number): Promise<void>;
}

/**
 * Maximum number of steps of all processes in one generated history; none needs as many. A loop that never waits
 * exceeds it and fails instead of hanging.
 */
const STEPS_MAX = 200_000;

/**
 * Creates a scheduler of the simulated processes' steps. `pick` chooses which due step is next: it returns a number
 * from 0 to below its argument.
 */
export function createClockwork(start: number, pick: (choices: number) => number): Clockwork {
  let now = start;
  let taken = 0;
  const waiting = new Set<Step>();

  const dueNow = (): Step[] =>
    [...waiting].filter((step) => step.owner.isRunning() && (step.at <= now || step.isDue()));

  /** Lets a process take one due step. Returns false if no process has a due step. */
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

/** Waits for one turn of the event loop. By then each process has run until it waits for its next step. */
function everybodyWaits(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Creates a pseudo-random choice (xorshift32). Seed 0 always chooses the step that has waited longest. */
export function createPick(seed: number): (choices: number) => number {
  let state = seed | 0;
  return (choices) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % choices;
  };
}
