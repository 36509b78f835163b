import type { Terminal } from "../command.ts";

/** One thing that `reachlog audit` does. */
export interface AuditAction {
  /** Its lines in `reachlog audit --help`: how it is called, and what it does. */
  readonly usage: string;
  readonly help: string;
  /** `args` are those behind the action's name. Answers the exit code. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}
