// These tests call the code directly.
import { expect, test } from "bun:test";
import { randomInt } from "node:crypto";
import type { Increments } from "../../src/backup/increments-manifest.ts";
import { hashedName, isFormer } from "../../src/backup/remote-object-names.ts";
import { playHistory, type Tally } from "./remote-model/play-backup-history.ts";

/** Number of random histories: enough to find a defect that shows in one of fifty. */
const HISTORIES = 200;

test(`every reported backup is readable in ${HISTORIES} random histories of two writers and a reader`, async () => {
  const first = Number(process.env["FAULT_SEED"] ?? randomInt(2 ** 31));
  const tally: Tally = { made: 0, busy: 0, killed: 0, unavailable: 0, read: 0 };
  for (let seed = first; seed < first + HISTORIES; seed += 1) {
    await playHistory(seed, tally).catch((cause: unknown) => {
      throw new Error(`the history of FAULT_SEED=${seed}`, { cause });
    });
  }
  // Each count in `tally` says how often a case occurred in the histories. Every case must occur often enough.
  console.log(tally);
  expect(Math.min(...Object.values(tally))).toBeGreaterThan(HISTORIES / 4);
});

const SHA = "a".repeat(64);
const segment = (first: number, last: number): string =>
  `segments/${[first, last].map((at) => String(at).padStart(16, "0")).join("-")}.zst`;
const own = (file: string): string => hashedName("log-1", file, SHA);
const others = (file: string): string => hashedName("log-2", file, SHA);

test.each([
  ["keys of the backup before", own("secrets-000002/keys.sqlite"), true],
  ["keys of a backup of this number", others("secrets-000003/keys.sqlite"), true],
  ["keys of another log's earlier backup", others("secrets-000002/keys.sqlite"), false],
  ["keys of a later backup", own("secrets-000004/keys.sqlite"), false],
  ["a manifest of the backup before", own("manifest-000002.json"), true],
  ["a manifest of a later backup", own("manifest-000004.json"), false],
  ["a claim", "manifest-000002.json", false],
  ["a segment at new positions", others(segment(21, 25)), true],
  ["a segment of an earlier build at new positions", segment(21, 25), true],
  ["a segment at earlier positions", own(segment(11, 20)), true],
  ["another log's segment at earlier positions", others(segment(11, 20)), false],
  ["an earlier build's segment at earlier positions", segment(11, 20), false],
  ["a segment after the last position", own(segment(31, 40)), false],
  ["a name that no backup writes", "segments/notes.txt", false],
])("backup 3 of positions 21 to 30 removes only former and unfinished objects: %s", (_what, name, isRemoved) => {
  const backups = [10, 20, 30].map((position) => ({ made_at: "", position, hash: "" }));
  expect(isFormer(name, { log: "log-1", backups } as unknown as Increments)).toBe(isRemoved);
});
