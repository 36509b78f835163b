import { expect, test } from "bun:test";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS, retry } from "./compare-log-with-ledger.ts";
import { createLedger } from "./record-answers-to-appends.ts";
import { startProgram } from "./start-program.ts";
import { isWhole } from "./required-tools.ts";

const newLogPath = temporaryLogs();

const KILLS = isWhole ? 200 : 80;
const LOADS = [
  { load: "many callers", program: "append-keyed", chars: "100" },
  { load: "one caller with appends in pieces", program: "append-keyed-one-caller", chars: "70000" },
] as const;
/** Maximum time in ms from a program's first acknowledged append until it is killed; the actual time is random. */
const LIFE_MS_MAX = 120;

test.each(LOADS)(
  `${KILLS} times kill -9 under load of $load, with retries by key, lose and double nothing`,
  async ({ load, program: name, chars }) => {
    const file = newLogPath();
    const ledger = createLedger();
    let unanswered = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const retried = ledger.unacknowledged();
      unanswered += retried.length;
      const program = startProgram(name, {
        arguments: [file, String(ledger.asked.size), chars, ...retried],
        onLine: (line) => ledger.take(line),
      });
      await program.said((line) => line.startsWith("+"));
      await Bun.sleep(Math.random() * LIFE_MS_MAX);
      await program.kill();
    }
    await retry(file, ledger);

    const found = await examine(file, ledger);
    console.log(
      `kill -9 ${KILLS}, ${load}: acknowledged ${found.acknowledged}, lost ${found.lost.length}, doubled ${found.doubled.length}, ` +
        `retried after a kill ${unanswered}`,
    );
    expect(found).toMatchObject(FAULTLESS);
    expect([...ledger.refusals]).toEqual([]);
    expect(found.acknowledged).toBeGreaterThan(KILLS);
    // In most rounds the kill came while an append was under way; otherwise the test would show nothing.
    expect(unanswered).toBeGreaterThan(KILLS / 2);
  },
);
