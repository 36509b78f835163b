import type { Terminal } from "../command.ts";

/** One thing that `reachlog outreach` does. */
export interface OutreachAction {
  /** Its lines in `reachlog outreach --help`: how it is called, and what it does. */
  readonly usage: string;
  readonly help: string;
  /** `args` are those behind the action's name. Answers the exit code. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}
