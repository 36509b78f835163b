import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { expectWhole } from "./compare-log-with-ledger.ts";
import { startProgram } from "./start-program.ts";
import { lacks } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const DAY_MS = 86_400_000;

/** Settings of the wall clock, one after the other, relative to the true time. */
const CLOCKS = ["+0", "+1d", "+0", "-1d", "+2d", "+0"];
/**
 * Minimum number of appends that each lease holder makes at each offset of the wall clock, before the test sets the
 * next one.
 */
const APPENDS = 200;

test.skipIf(lacks("faketime"))(
  "event times never go back and a lease has one holder while the wall clock jumps",
  async () => {
    const file = newLogPath();
    const clock = join(dirname(file), "clock");
    writeFileSync(clock, CLOCKS[0]!);
    const holders = ["ann", "bob"].map((holder) => {
      let appended = 0;
      const program = startProgram("append-with-lease", {
        wrapper: clockFrom(clock),
        arguments: [file, holder],
        onLine: (line) => (appended += line.startsWith("+") ? 1 : 0),
      });
      return {
        kill: () => program.kill(),
        async appendMore() {
          const enough = appended + APPENDS;
          await program.said(() => appended >= enough);
        },
      };
    });
    for (const offset of CLOCKS) {
      writeFileSync(clock, offset);
      await Promise.all(holders.map((holder) => holder.appendMore()));
    }
    for (const holder of holders) await holder.kill();

    await using store = await openSqliteStore({ file });
    const events = await take(store.read());
    await expectWhole(store, events);
    const times = events.map(({ time }) => Date.parse(time));
    const backwards = times.filter((time, index) => time < (times[index - 1] ?? 0));
    const terms = events.map(({ data }) => data as { holder: string; token: number });
    const outdated = terms.filter(({ token }, index) => token < (terms[index - 1]?.token ?? 0));
    const holdersByToken = Map.groupBy(terms, ({ token }) => token);
    const shared = [...holdersByToken.values()].filter((term) => new Set(term.map(({ holder }) => holder)).size > 1);
    console.log(
      `clock ${CLOCKS.join(", ")}: appended ${events.length} in ${holdersByToken.size} terms; times backwards ` +
        `${backwards.length}, by an outdated holder ${outdated.length}, leases held twice ${shared.length}`,
    );
    expect({ backwards, outdated, shared }).toEqual({ backwards: [], outdated: [], shared: [] });
    // The events' times show that the store dated them by a clock that jumped by two days.
    expect(times.at(-1)! - times[0]!).toBeGreaterThan(2 * DAY_MS - 60_000);
  },
);

/**
 * Returns the beginning of a command that starts a program whose clock is moved as the file says. The program's timers
 * are not affected, as when the clock of a machine is set.
 */
function clockFrom(file: string): readonly string[] {
  const settings = [`FAKETIME_TIMESTAMP_FILE=${file}`, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
  // The command `faketime` requires an offset and puts it into FAKETIME, which would take precedence over the file, so
  // that variable is unset again.
  return ["faketime", "-m", "-f", "+0", "env", "-u", "FAKETIME", ...settings];
}
