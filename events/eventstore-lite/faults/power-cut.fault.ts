import { expect, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createExt4, type Disk } from "./test-disk.ts";
import { examine, FAULTLESS, retry } from "./compare-log-with-ledger.ts";
import { freeze } from "./freeze-programs.ts";
import { createLedger, type Ledger } from "./record-answers-to-appends.ts";
import { type Program, startProgram } from "./start-program.ts";
import { RECORD_BYTES } from "./plain-file-record-length.ts";
import { isWhole, lacks, run } from "./required-tools.ts";

const MIB = 1024 * 1024;
const DISK_BYTES = 512 * MIB;

const CUTS = isWhole ? 100 : 20;
/** Number of power cuts that one log goes through, so that a recovered log is cut again; then a new log begins. */
const CUTS_PER_LOG = 10;
/**
 * Number of characters of each event. Events of this size cause a checkpoint of the database about every 100 ms, so
 * that some power cuts happen during a checkpoint.
 */
const CHARS = "12000";
/**
 * Once every program has acknowledged its first write, the test waits a random time of at most this many ms. Then it
 * cuts the power.
 */
const LOAD_MS_MAX = 250;

test.skipIf(lacks("root", "mount", "xfs_io"))(
  `${CUTS} power cuts lose no acknowledged append, but do with synchronous=NORMAL`,
  async () => {
    using disk = createExt4(DISK_BYTES);
    const total = { acknowledged: 0, lost: 0, raw: 0, rawLost: 0, weak: 0, weakLost: 0 };
    for (let first = 0; first < CUTS; first += CUTS_PER_LOG) {
      const log = join(disk.path, `log-${first}.sqlite`);
      const ledger = createLedger();
      for (let cut = 0; cut < CUTS_PER_LOG; cut += 1) {
        const { raw, weak } = await loadAndCut(disk, log, ledger);
        total.raw += raw.said;
        total.rawLost += Math.max(0, raw.said - raw.kept);
        total.weak += weak.said;
        total.weakLost += Math.max(0, weak.said - weak.kept);
        expect(await examine(log, ledger)).toMatchObject(FAULTLESS);
      }
      await retry(log, ledger);
      const found = await examine(log, ledger);
      expect(found).toMatchObject(FAULTLESS);
      total.acknowledged += found.acknowledged;
      total.lost += found.lost.length;
      rmSync(log);
    }
    console.log(
      `power cuts ${CUTS}: acknowledged ${total.acknowledged}, lost ${total.lost}; ` +
        `control (pwrite and fsync) ${total.raw}, lost ${total.rawLost}; ` +
        `synchronous=NORMAL ${total.weak}, lost ${total.weakLost}`,
    );
    expect(total.rawLost).toBe(0);
    expect(total.weakLost).toBeGreaterThan(0);
    expect(total.acknowledged).toBeGreaterThan(CUTS);
  },
);

/** Number of a program's records after a power cut: `said` were reported as durable, `kept` are on the disk. */
interface Count {
  readonly said: number;
  readonly kept: number;
}

/**
 * Lets the store, a program that writes and syncs plainly, and a database without durability write at the same time
 * until the power is cut. Then restores power.
 */
async function loadAndCut(disk: Disk, log: string, ledger: Ledger): Promise<{ raw: Count; weak: Count }> {
  const rawFile = join(disk.path, "raw");
  const weakFile = join(disk.path, "weak.sqlite");
  for (const file of [rawFile, weakFile, `${weakFile}-wal`, `${weakFile}-shm`]) rmSync(file, { force: true });
  let [rawSaid, weakSaid] = [0, 0];
  const args = [log, String(ledger.asked.size), CHARS, ...ledger.unacknowledged()];
  const programs: readonly Program[] = [
    startProgram("append-keyed", { arguments: args, onLine: (line) => ledger.take(line) }),
    startProgram("fsync-plain-file", { arguments: [rawFile], onLine: (line) => (rawSaid = Number(line)) }),
    startProgram("commit-without-durability", { arguments: [weakFile], onLine: (line) => (weakSaid = Number(line)) }),
  ];
  await Promise.all(programs.map((program) => program.said((line) => !line.startsWith("?"))));
  await Bun.sleep(Math.random() * LOAD_MS_MAX);

  await freeze(programs);
  run("xfs_io", "-x", "-c", "shutdown", disk.path);
  await Promise.all(programs.map((program) => program.kill()));
  disk.unmount();
  disk.mount();
  return {
    raw: { said: rawSaid, kept: countRecords(rawFile) },
    weak: { said: weakSaid, kept: countRows(weakFile) },
  };
}

/**
 * Counts the complete records at the beginning of the file that the control program writes without a database: one
 * numbered record after the other, each with its own fsync.
 */
function countRecords(file: string): number {
  const bytes = readFileSync(file, "latin1");
  let count = 0;
  while (bytes.slice(count * RECORD_BYTES, (count + 1) * RECORD_BYTES).trim() === String(count + 1)) count += 1;
  return count;
}

/** Counts the rows of the database that was opened without durability; 0 if not even its tables exist. */
function countRows(file: string): number {
  const db = new DatabaseSync(file);
  try {
    const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'snapshots'").get();
    return isThere ? Number(db.prepare("SELECT count(*) AS rows FROM snapshots").get()?.["rows"]) : 0;
  } finally {
    db.close();
  }
}
