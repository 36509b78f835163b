import type { Terminal } from "../command.ts";

/** One thing that `reachlog deliveries` does. */
export interface DeliveriesAction {
  /** Its lines in `reachlog deliveries --help`: how it is called, and what it does. */
  readonly usage: string;
  readonly help: string;
  /** `args` are those behind the action's name. Answers the exit code. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}
