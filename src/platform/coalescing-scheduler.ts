import { nextTurn } from "./time-slices.ts";

/**
 * Work that is done soon after it was asked for: one turn at a time, for all who asked by then. A turn for each
 * completed request took 12 to 16 % of the request thread while a backlog drained.
 */
export interface CoalescingScheduler {
  ask(): void;
  readonly stopped: boolean;
  /** No further turn begins; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/** `turn` never rejects. */
export function createCoalescingScheduler(turn: () => Promise<void>): CoalescingScheduler {
  let running: Promise<void> | undefined;
  let asked = false;
  let stopped = false;

  const run = async (): Promise<void> => {
    while (asked) {
      await nextTurn();
      if (stopped) break;
      asked = false;
      await turn();
    }
    running = undefined;
  };

  return {
    ask() {
      if (stopped) return;
      asked = true;
      running ??= run();
    },
    get stopped() {
      return stopped;
    },
    async stop() {
      stopped = true;
      asked = false;
      await running;
    },
  };
}
