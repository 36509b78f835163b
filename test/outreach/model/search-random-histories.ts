/**
 * Generates histories in search of one that breaks a rule: `search-random-histories.ts [COUNT] [SEED] [campaigns]`.
 * With `campaigns`, all commands are about campaigns. The last line is JSON; the exit code is 1 if one was found.
 */
import * as fc from "fast-check";
import { campaignCommands, historyCommands } from "./random-history-commands.ts";
import { histories } from "./run-random-histories.ts";
import { createLogs } from "./log-with-copies.ts";
import { createTally } from "./count-situations-in-histories.ts";

/** Result of the search, which is its last line of output. */
export interface Hunted {
  readonly found: boolean;
  /** Number of histories that the search tried. */
  readonly after: number;
  /** Number of commands in the shortest history that breaks a rule; 0 if there is none. */
  readonly commands: number;
  readonly rule: string;
}

const [count = "1000", seed, about] = process.argv.slice(2);
const logs = createLogs();
const tally = createTally();
const told = await fc.check(
  histories(logs, tally, undefined, about === "campaigns" ? campaignCommands : historyCommands),
  {
    numRuns: Number(count),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
  },
);
if (told.failed) console.log(fc.defaultReportMessage(told));
else console.log(tally.line());
const hunted: Hunted = {
  found: told.failed,
  after: told.numRuns,
  commands: told.counterexample === null ? 0 : [...told.counterexample[1]].length,
  rule: told.errorInstance instanceof Error ? told.errorInstance.message : "",
};
await logs[Symbol.asyncDispose]();
console.log(JSON.stringify(hunted));
process.exit(told.failed ? 1 : 0);
