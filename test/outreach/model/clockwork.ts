/** A piece of work that waits for its turn. */
interface Step {
  readonly owner: Owner;
  /** Earliest time, ms since the epoch; Infinity if only `isDue` decides. */
  readonly at: number;
  readonly isDue: () => boolean;
  readonly take: () => Promise<void>;
}

/** A process that takes steps. The steps of a stopped process wait until it runs again. */
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
 * Runs the steps of several processes one at a time, in an order decided by a seed, so that a history can be repeated
 * exactly. Time stands still while any step is due.
 */
export interface Clockwork {
  /** ms since the epoch, by a clock that is never wrong. */
  now(): number;
  /** Resolves with the result of `work` after its turn. */
  turn<T>(turn: Turn<T>): Promise<T>;
  /** Drops the pending steps of a dead process. */
  forget(owner: Owner): void;
  /** Takes `count` steps, or fewer if they would take longer than `withinMs`. */
  steps(count: number, withinMs: number): Promise<void>;
  /** Lets `ms` pass and takes all steps that fall due. */
  pass(ms: number): Promise<void>;
}

/** More steps than any history takes: a loop that never waits fails instead of hanging. */
const STEPS_MAX = 200_000;

/** `pick` chooses among the possible next steps: 0 to below its argument. */
export function createClockwork(start: number, pick: (choices: number) => number): Clockwork {
  let now = start;
  let taken = 0;
  const waiting = new Set<Step>();

  const dueNow = (): Step[] =>
    [...waiting].filter((step) => step.owner.isRunning() && (step.at <= now || step.isDue()));

  /** Returns false if no process has anything to do now. */
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

/** Waits one turn of the event loop; by then each chain of promises has reached its next wait. */
function everybodyWaits(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Creates a small generator (xorshift32). Seed 0 always chooses the step that has waited longest. */
export function createPick(seed: number): (choices: number) => number {
  let state = seed | 0;
  return (choices) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % choices;
  };
}
