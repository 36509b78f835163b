import { expect, test } from "bun:test";
import { temporaryLogs } from "../test/temporary-logs.ts";
import { examine, FAULTLESS } from "./compare-log-with-ledger.ts";
import { createLedger, type Ledger } from "./record-answers-to-appends.ts";
import { startProgram } from "./start-program.ts";

const newLogPath = temporaryLogs();

const DESCRIPTORS_MAX = 64;
/**
 * Maximum number of free file descriptors that the test leaves to a starting process. Opening a store takes fewer, so
 * some starts fail and some succeed.
 */
const LEFT_MAX = 20;

test("an open store appends and reads without any free file descriptor", async () => {
  const file = newLogPath();
  const { ledger, words } = await appendWithout(file, 0, "after");
  console.log(
    `no descriptors while running: acknowledged ${ledger.acknowledged.size}, refused ${ledger.refusals.size}`,
  );
  expect(words).toEqual([expect.stringMatching(/^read \d+/)]);
  expect(ledger.unacknowledged()).toEqual([]);
  expect(await examine(file, ledger)).toMatchObject(FAULTLESS);
});

test("a start with few free file descriptors succeeds or fails without harming the log", async () => {
  const outcomes = { opened: 0, refused: 0, ended: 0 };
  for (let left = 0; left <= LEFT_MAX; left += 1) {
    const file = newLogPath();
    const { ledger, words, code } = await appendWithout(file, left, "before");
    // Bun ends the process if it finds no descriptor for a module. That counts as a failed start, and not as a hang.
    if (code !== 0) outcomes.ended += 1;
    else if (words[0]?.startsWith("refused")) outcomes.refused += 1;
    else outcomes.opened += 1;
    expect(await examine(file, ledger)).toMatchObject(FAULTLESS);
  }
  console.log(`few descriptors at the start: ${JSON.stringify(outcomes)}`);
  expect(outcomes.refused).toBeGreaterThan(0);
  expect(outcomes.opened).toBeGreaterThan(0);
});

async function appendWithout(
  file: string,
  left: number,
  when: "before" | "after",
): Promise<{ ledger: Ledger; words: string[]; code: number | null }> {
  const ledger = createLedger();
  const words: string[] = [];
  const program = startProgram("append-without-descriptors", {
    wrapper: ["sh", "-c", `ulimit -n ${DESCRIPTORS_MAX}; exec "$@" 2>&1`, "sh"],
    arguments: [file, String(left), when],
    onLine: (line) => (/^[?+!] /.test(line) ? ledger.take(line) : words.push(line)),
  });
  const { code } = await program.ended;
  return { ledger, words, code };
}
