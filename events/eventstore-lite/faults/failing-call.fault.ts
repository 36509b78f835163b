import { expect, test } from "bun:test";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS, retry } from "./examine.ts";
import { appendRoundsUnder, type Injected } from "./injected.ts";
import { isWhole, lacks } from "./tools.ts";

const newLogPath = temporaryLogs();

/** More calls than any of these programs makes; ends the loop below. */
const CALLS_MAX = 1_000;

// node:sqlite syncs with fsync. fdatasync is named too, so that an SQLite that uses it does not escape.
const SYNCS = "fsync,fdatasync";

interface Tally {
  runs: number;
  /** Runs in which the log could not be opened. */
  unopened: number;
  inDoubt: number;
  full: number;
  acknowledged: number;
}

const isUnable = lacks("strace");

/** Fails each write, or each thirteenth: there are some two hundred. */
const WRITES_STEP = isWhole ? 1 : 13;

test.skipIf(isUnable)(
  "each fsync fails in turn, once: what is acknowledged is there, what is in doubt is whole or absent",
  async () => {
    const tally = await failEach(`${SYNCS}:error=EIO`, (number) => `${number}`, expectFailStop);
    report("fsync EIO", tally);
    expect(tally.inDoubt).toBeGreaterThan(0);
  },
);

test.skipIf(isUnable)("each fsync fails in turn and all after it: the same", async () => {
  const tally = await failEach(`${SYNCS}:error=EIO`, (number) => `${number}+`, expectFailStop);
  report("fsync EIO from there on", tally);
  expect(tally.inDoubt).toBeGreaterThan(0);
});

test.skipIf(isUnable)("writes fail in turn with EIO: the same", async () => {
  const tally = await failEach("pwrite64:error=EIO", (number) => `${number}`, expectFailStop, WRITES_STEP);
  report("pwrite64 EIO", tally);
  expect(tally.inDoubt).toBeGreaterThan(0);
});

test.skipIf(isUnable)(
  "writes fail in turn for want of space: the append is refused, and works when it is tried again",
  async () => {
    const tally = await failEach("pwrite64:error=ENOSPC", (number) => `${number}`, expectAllInTheEnd, WRITES_STEP);
    report("pwrite64 ENOSPC", tally);
    expect(tally.full).toBeGreaterThan(0);
  },
);

/**
 * Runs the program once for each call that it makes (each `step`th), on a new log each time, until no call is left to
 * fail.
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
 * Expects one of three outcomes: refused with a reason at opening; in doubt, after which nothing is acknowledged and
 * `failed` resolves; or unharmed.
 */
function expectFailStop({ ledger, words }: Injected): void {
  if (isRefused(words)) return;
  const isInDoubt = ledger.refusals.size > 0;
  expect(words).toEqual(isInDoubt ? ["failed AppendInDoubt", "closed"] : ["closed"]);
  if (isInDoubt) expect([...ledger.refusals].sort()).toEqual(["AppendInDoubt", "StoreClosed"]);
  expect(ledger.acknowledgedAfterDoubt).toBe(0);
}

/**
 * Expects one of three outcomes: refused with a reason at opening; refused as full and then acknowledged by the same
 * store; or unharmed.
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
