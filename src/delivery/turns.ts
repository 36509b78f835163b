/** Work that is done when asked for: one turn at a time, and one more when asked meanwhile. */
export interface Turns {
  ask(): void;
  readonly stopped: boolean;
  /** No further turn begins; resolves when the one under way has ended. */
  stop(): Promise<void>;
}

/** `turn` never rejects. */
export function createTurns(turn: () => Promise<void>): Turns {
  let running: Promise<void> | undefined;
  let asked = false;
  let stopped = false;

  const run = async (): Promise<void> => {
    while (asked) {
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
