import { expect } from "bun:test";
import { hash } from "node:crypto";
import { type Increments, secretFile, segmentFile } from "../../../src/backup/increments-manifest.ts";
import { SECRET_FILES } from "../../../src/backup/manifest.ts";
import { addBackup, readAll } from "../../../src/backup/remote-backups.ts";
import { listObjects, parseRemoteName } from "../../../src/backup/remote-object-names.ts";
import { ServiceError } from "../../../src/platform/service-error.ts";
import { createRandom } from "../../harness/random.ts";
import { createModelStore, Killed, type ModelStore } from "./store.ts";

const LOG = "3f6a0c1e-model";
const [WRITERS, BACKUPS, READS] = [2, 4, 3];

export interface Tally {
  made: number;
  busy: number;
  killed: number;
  unavailable: number;
  read: number;
}

interface Completed {
  readonly number: number;
  readonly position: number;
}

/**
 * Plays one history: two writers and a reader on a store with delays, faults and late listings. Throws unless each
 * backup reported to a writer can be read, both during the history and at its end.
 */
export async function playHistory(seed: number, tally: Tally): Promise<void> {
  const random = createRandom(seed);
  const store = createModelStore(random);
  const log = createModelLog(random);
  const completed: Completed[] = [];
  const writers = Array.from({ length: WRITERS }, async () => {
    for (let backup = 0; backup < BACKUPS; backup += 1) await attempt(store, log, random, completed, tally);
  });
  const reader = (async () => {
    for (let read = 0; read < READS; read += 1) {
      for (let pause = Math.floor(random() * 30); pause > 0; pause -= 1) await store.turn();
      await readOnce(store, Math.max(0, ...completed.map(({ number }) => number)), tally);
    }
  })();
  await store.run(Promise.all([...writers, reader]));

  store.settle(0.5);
  await store.run(attempt(store, log, () => 1, completed, tally));
  // No two backups of the writers have the same number.
  expect(new Set(completed.map(({ number }) => number)).size).toBe(completed.length);
  const { increments } = await readWhole(store);
  // This last backup removes what late requests left behind. The store now has only the files that its manifest lists,
  // and the manifest itself, which `listObjects` does not list.
  const left = [...store.objects.keys()].filter((name) => parseRemoteName(name)?.kind !== "claim");
  expect(left.filter((name) => !listObjects(increments).has(name))).toHaveLength(1);
  store.settle(1);
  const last = await readWhole(store);
  expect(last.increments).toEqual(increments);
  for (const { number, position } of completed) expect(increments.backups[number - 1]!.position).toBe(position);
}

function createModelLog(random: () => number) {
  let position = 1;
  let made = 0;
  const segment = (first: number, last: number) => {
    // Two writers may compress the same events to different bytes, as different versions of the program would.
    const bytes = Buffer.from(`${first}-${last} by ${random() < 0.5 ? "one" : "another"}`);
    return { entry: { first, last, hash: "", bytes: bytes.length, sha256: hash("sha256", bytes) }, bytes };
  };
  return {
    /**
     * Backs up the model log from the end of the last backup in the manifest `former`, or from the log's start, to its
     * present end.
     */
    backUp(former: Increments | undefined) {
      position += Math.floor(random() * 3);
      made += 1;
      const after = former?.backups.at(-1)!.position ?? 0;
      const middle = after + Math.floor((position - after) / 2);
      const isSplit = middle > after && random() < 0.3;
      const ranges = isSplit
        ? [[after + 1, middle] as const, [middle + 1, position] as const]
        : [[after + 1, position] as const];
      const segments = ranges.filter(([first, last]) => first <= last).map(([first, last]) => segment(first, last));
      const backups = [...(former?.backups ?? []), { made_at: String(made), position, hash: "" }];
      const secrets = SECRET_FILES.map((name) => {
        // The vault stays the same in all backups. The keys and the head differ in each.
        const bytes = Buffer.from(name === "vault" ? "vault" : `${name} ${made}`);
        return { name, bytes, entry: { bytes: bytes.length, sha256: hash("sha256", bytes) } };
      });
      const increments = {
        log: LOG,
        segments: [...(former?.segments ?? []), ...segments.map(({ entry }) => entry)],
        backups,
        files: Object.fromEntries(secrets.map(({ name, entry }) => [name, entry])),
      } as unknown as Increments;
      const added = new Map([
        ...segments.map(({ entry, bytes }) => [segmentFile("", entry), () => bytes] as const),
        ...secrets.map(({ name, bytes }) => [secretFile("", increments, name), () => bytes] as const),
      ]);
      return { increments, manifest: Buffer.from(JSON.stringify(increments)), added };
    },
  };
}

const open = (manifest: Uint8Array): Increments => JSON.parse(Buffer.from(manifest).toString("utf8")) as Increments;

async function attempt(
  store: ModelStore,
  log: ReturnType<typeof createModelLog>,
  random: () => number,
  completed: Completed[],
  tally: Tally,
): Promise<void> {
  let lives = random() < 0.3 ? Math.floor(random() * 40) : Infinity;
  const storage = store.openClient(() => (lives -= 1) < 0);
  try {
    const { increments } = await addBackup({ storage, place: "s3://model", open }, LOG, async (former) =>
      log.backUp(former?.increments),
    );
    const { length: number } = increments.backups;
    completed.push({ number, position: increments.backups.at(-1)!.position });
    tally.made += 1;
  } catch (fault) {
    count(fault, tally);
  }
}

function count(fault: unknown, tally: Tally): void {
  if (fault instanceof Killed) tally.killed += 1;
  else if (fault instanceof ServiceError && fault.kind === "busy") tally.busy += 1;
  else if (fault instanceof ServiceError && fault.kind === "unavailable") tally.unavailable += 1;
  else throw fault;
}

/**
 * Reads the newest backup as a restore does. Its number must be at least `least`, the number of the last backup that
 * was completed before.
 */
async function readOnce(store: ModelStore, least: number, tally: Tally): Promise<void> {
  try {
    const { isThere, number } = await readChecked(store);
    expect(isThere || least === 0).toBe(true);
    expect(number).toBeGreaterThanOrEqual(least);
    tally.read += 1;
  } catch (fault) {
    count(fault, tally);
  }
}

async function readWhole(store: ModelStore) {
  let found: Awaited<ReturnType<typeof readChecked>> | undefined;
  await store.run(readChecked(store).then((read) => void (found = read)));
  return { increments: found!.increments! };
}

/** Reads the newest backup and compares each file with its manifest. */
async function readChecked(store: ModelStore) {
  const storage = store.openClient(() => false);
  let increments: Increments | undefined;
  const read = (manifest: Uint8Array): Increments => (increments = open(manifest));
  const taken = new Map<string, Uint8Array>();
  const isThere = await readAll(
    { storage, place: "s3://model", open: read },
    (file, bytes) => void taken.set(file, bytes),
  );
  if (!isThere || increments === undefined) return { isThere, number: 0, increments };
  const { segments, files, backups } = increments;
  let last = 0;
  for (const segment of segments) {
    expect(segment.first).toBe(last + 1);
    last = segment.last;
    expect(hash("sha256", taken.get(segmentFile("", segment)) ?? "missing")).toBe(segment.sha256);
  }
  expect(last).toBe(backups.at(-1)!.position);
  for (const name of SECRET_FILES) {
    expect(hash("sha256", taken.get(secretFile("", increments, name)) ?? "missing")).toBe(files[name].sha256);
  }
  return { isThere, number: backups.length, increments };
}
