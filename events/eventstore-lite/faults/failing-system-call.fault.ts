import { expect, test } from "bun:test";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS, retry } from "./compare-log-with-ledger.ts";
import { appendRoundsUnder, type Injected } from "./inject-syscall-fault.ts";
import { isWhole, lacks } from "./required-tools.ts";

const newLogPath = temporaryLogs();

/**
 * Maximum number of times that a test makes a system call fail, so that its loop ends. No tested program makes as many
 * calls.
 */
const CALLS_MAX = 1_000;

// System calls that are made to fail. Today's node:sqlite syncs with fsync; the test also covers an SQLite that uses
// fdatasync.
const SYNCS = "fsync,fdatasync";

interface Tally {
  runs: number;
  /** Number of times that the tested program could not open the log. */
  unopened: number;
  inDoubt: number;
  full: number;
  acknowledged: number;
}

const isUnable = lacks("strace");

/**
 * Distance between the write calls that are made to fail: each call in a whole test, otherwise each thirteenth of some
 * two hundred.
 */
const WRITES_STEP = isWhole ? 1 : 13;

test.skipIf(isUnable)("a single failing fsync loses no acknowledged append and leaves none half done", async () => {
  const tally = await failEach(`${SYNCS}:error=EIO`, (number) => `${number}`, expectFailStop);
  report("fsync EIO", tally);
  expect(tally.inDoubt).toBeGreaterThan(0);
});

test.skipIf(isUnable)("permanently failing fsyncs lose no acknowledged append and leave none half done", async () => {
  const tally = await failEach(`${SYNCS}:error=EIO`, (number) => `${number}+`, expectFailStop);
  report("fsync EIO from there on", tally);
  expect(tally.inDoubt).toBeGreaterThan(0);
});

test.skipIf(isUnable)(
  "a write that fails with EIO loses no acknowledged append and leaves none half done",
  async () => {
    const tally = await failEach("pwrite64:error=EIO", (number) => `${number}`, expectFailStop, WRITES_STEP);
    report("pwrite64 EIO", tally);
    expect(tally.inDoubt).toBeGreaterThan(0);
  },
);

test.skipIf(isUnable)("a write that fails for lack of space refuses its append, and a retry succeeds", async () => {
  const tally = await failEach("pwrite64:error=ENOSPC", (number) => `${number}`, expectAllInTheEnd, WRITES_STEP);
  report("pwrite64 ENOSPC", tally);
  expect(tally.full).toBeGreaterThan(0);
});

/**
 * Runs a program once for each of its system calls (or each `step`th) with that call failing, on a new log each time,
 * until no call is left to fail.
 */
async function failEach(
  injection: string,
  when: (number: number) => string,
  expectOutcome: (outcome: Injected) => void,
  step = 1,
): Promise<Tally> {
  const tally: Tally = { runs: 0, unopened: 0, inDoubt: 0, full: 0, acknowledged: 0 };
  for (let number = 1; number <= CALLS_MAX; number += step) {
    const file = newLogPath();
    const outcome = await appendRoundsUnder(`${injection}:when=${when(number)}`, file);
    if (!outcome.isInjected) return tally;
    const { ledger } = outcome;
    expect({ number, code: outcome.code }).toEqual({ number, code: 0 });
    expectOutcome(outcome);
    expect({ number, ...(await examine(file, ledger)) }).toMatchObject(FAULTLESS);
    await retry(file, ledger);
    expect({ number, ...(await examine(file, ledger)) }).toMatchObject(FAULTLESS);
    tally.runs += 1;
    tally.acknowledged += ledger.acknowledged.size;
    if (isRefused(outcome.words)) tally.unopened += 1;
    if (ledger.refusals.has("AppendInDoubt")) tally.inDoubt += 1;
    if (ledger.refusals.has("StoreFull")) tally.full += 1;
  }
  throw new Error(`the program makes more than ${CALLS_MAX} calls`);
}

/**
 * Expects one of three outcomes of a failed system call: the log was refused with a reason at opening; an append was in
 * doubt, and nothing was acknowledged after it; or the program was unharmed.
 */
function expectFailStop({ ledger, words }: Injected): void {
  if (isRefused(words)) return;
  const isInDoubt = ledger.refusals.size > 0;
  expect(words).toEqual(isInDoubt ? ["failed AppendInDoubt", "closed"] : ["closed"]);
  if (isInDoubt) expect([...ledger.refusals].sort()).toEqual(["AppendInDoubt", "StoreClosed"]);
  expect(ledger.acknowledgedAfterDoubt).toBe(0);
}

/**
 * Expects one of three outcomes of a failed call: the log was refused with a reason at opening; appends were refused as
 * full and then acknowledged by the same store; or the program was unharmed.
 */
function expectAllInTheEnd({ ledger, words }: Injected): void {
  if (isRefused(words)) return;
  expect(words).toEqual(["closed"]);
  expect([...ledger.refusals].filter((name) => name !== "StoreFull")).toEqual([]);
  expect(ledger.unacknowledged()).toEqual([]);
}

/**
 * True if the log was not opened, for a stated reason. A program that fails to open the log must not look like one
 * without output.
 */
function isRefused(words: readonly string[]): boolean {
  return words.length === 1 && /^refused (StoreUnusable|Error) .+/.test(words[0]!);
}

function report(what: string, { runs, unopened, inDoubt, full, acknowledged }: Tally): void {
  console.log(
    `${what}, ${runs} in turn: acknowledged ${acknowledged}, falsely 0; in doubt ${inDoubt}, full ${full}, ` +
      `not opened ${unopened}`,
  );
}
