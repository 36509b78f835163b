// These tests run parts of the service inside the test process.
import { afterEach, describe, expect, jest, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import {
  createLogTree,
  loadSigningKey,
  openCheckpoint,
  signCheckpoint,
  checkpointFiles,
  type CheckpointStore,
} from "eventstore-lite/proof";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { rebuildChain, tamper } from "../../events/eventstore-lite/test/tampering.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { openSignedHeads } from "../../src/log/sign-heads-and-prove-events.ts";
import { formatOrigin, checkpointInVault } from "../../src/log/sign-and-compare-checkpoints.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { createEventLog, SERVICE_METADATA, type EventLog } from "../../src/log/event-log.ts";
import { logFiles, type LogFiles } from "../../src/log/log-file-paths.ts";
import { newLogFile, newNotes, toLogContext } from "../harness/in-process/temporary-log.ts";
import { ALL_ROLES } from "../harness/in-process/all-roles-held.ts";

afterEach(() => {
  jest.useRealTimers();
});

/** A service's log and checkpoints, which a test may open and close repeatedly. */
interface House {
  readonly files: LogFiles;
  readonly warnings: string[];
  /** Number of times that the log's head was read while checkpoints were kept. */
  readonly heads: { asked: number };
  /**
   * Opens the log, runs `work` while the log's signed heads are written as checkpoints, and closes the log in order.
   * `acceptLoss`: the log may lack events that the last checkpoint covers.
   */
  run(work?: (eventLog: EventLog) => Promise<void>, acceptLoss?: boolean): Promise<void>;
}

function house(place: (store: EventStore<Event>, files: LogFiles) => CheckpointStore = besideTheLog): House {
  const files = logFiles(newLogFile());
  const warnings: string[] = [];
  const heads = { asked: 0 };
  const logger = { debug() {}, info() {}, error() {}, warn: (message: string) => void warnings.push(message) };
  return {
    files,
    warnings,
    heads,
    async run(work, acceptLoss = false) {
      await using store = await openSqliteStore<Event>({ file: files.log, codec });
      const head = () => {
        heads.asked += 1;
        return store.head();
      };
      const eventLog = createEventLog({ ...store, head }, makeId);
      const context = { ...toLogContext(eventLog, { clock: () => 0, logger }), checkpoints: place(store, files) };
      await using _checkpoints = await openSignedHeads(context, ALL_ROLES, acceptLoss);
      await work?.(eventLog);
    },
  };
}

const besideTheLog = (_store: EventStore<Event>, files: LogFiles) => checkpointFiles(files);

async function write(eventLog: EventLog, count: number): Promise<void> {
  for (let number = 1; number <= count; number++) {
    const data = { text: `message ${number}` };
    await eventLog.append("requests", [{ type: "MessageRequested", data }], SERVICE_METADATA);
  }
}

/** The content of the checkpoint next to the log. */
function known({ files }: House) {
  const { publicKey } = loadSigningKey(files.signingKey);
  return openCheckpoint(readFileSync(files.checkpoint, "utf8"), publicKey);
}

async function refusal(work: Promise<void>): Promise<string> {
  try {
    await work;
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "damaged") return fault.message;
    throw fault;
  }
  throw new Error("it was started");
}

/** Returns the type and the data of each event in the log. */
async function eventsOf({ files }: House): Promise<{ type: string; data: unknown }[]> {
  await using store = await openSqliteStore<Event>({ file: files.log, codec });
  const events: { type: string; data: unknown }[] = [];
  for await (const { type, data } of store.read()) events.push({ type, data });
  return events;
}

test("a checkpoint exists from the first start and covers the head after a stop", async () => {
  const home = house();
  await home.run(async () => expect(known(home)).toMatchObject({ position: 0 }));
  await home.run((eventLog) => write(eventLog, 5));
  await home.run(async ({ store }) => {
    const { position, hash } = await store.head();
    expect(known(home)).toEqual({
      origin: formatOrigin(store),
      position,
      hash,
      root: Buffer.from(await createLogTree(store).at(position).root()).toString("hex"),
      time: "1970-01-01T00:00:00.000Z",
    });
    expect(position).toBe(5);
  });
  expect(home.warnings).toEqual([]);
});

test("a checkpoint is written every ten seconds, but only if the head has moved", async () => {
  const home = house();
  jest.useFakeTimers();
  await home.run(async (eventLog) => {
    const first = readFileSync(home.files.checkpoint, "utf8");
    await write(eventLog, 2);
    const { asked } = home.heads;
    jest.advanceTimersByTime(9_999);
    await eventLog.store.head();
    expect(home.heads.asked).toBe(asked + 1);
    jest.advanceTimersByTime(1);
    while (readFileSync(home.files.checkpoint, "utf8") === first) await new Promise(setImmediate);
    expect(known(home).position).toBe(2);
    // The log does not grow, so the service must not write the checkpoint again. This text must still be there at the
    // end.
    writeFileSync(home.files.checkpoint, "not overwritten");
    jest.advanceTimersByTime(60_000);
  });
  expect(readFileSync(home.files.checkpoint, "utf8")).toBe("not overwritten");
});

test("a checkpoint that contradicts the log is not replaced", async () => {
  const home = house();
  await home.run(async (eventLog) => {
    const denied = { origin: formatOrigin(eventLog.store), position: 9, hash: "0".repeat(64), time: undefined };
    writeFileSync(home.files.checkpoint, signCheckpoint(denied, loadSigningKey(home.files.signingKey)));
    await write(eventLog, 5);
  });
  expect(known(home).position).toBe(9);
  expect(await refusal(home.run())).toContain("the log ends at position 5");
});

test("an unwritable checkpoint causes a warning and is written at a later start", async () => {
  const home = house();
  await home.run(async (eventLog) => {
    rmSync(home.files.checkpoint);
    mkdirSync(home.files.checkpoint);
    await write(eventLog, 1);
  });
  expect(home.warnings).toEqual(["the checkpoint could not be written"]);
  rmSync(home.files.checkpoint, { recursive: true });
  await home.run();
  expect(existsSync(home.files.checkpoint)).toBe(true);
});

test("no head is signed over an altered event with its original hash", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 9));
  const before = readFileSync(home.files.checkpoint, "utf8");
  tamper(home.files.log, `UPDATE events SET data = '{"text":"other"}' WHERE position = 4`);
  await home.run((eventLog) => write(eventLog, 1));
  expect(home.warnings).toContain("the checkpoint could not be written");
  expect(readFileSync(home.files.checkpoint, "utf8")).toBe(before);
});

test("wrong tiles are rebuilt before a head is signed", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 300));
  const { root } = known(home);
  await home.run(async ({ store }) => {
    const state = Buffer.alloc(32).toString("base64");
    await store.snapshots.save("merkle/1/0", { version: 1, position: 256, state });
  });
  await home.run();
  expect(known(home)).toMatchObject({ position: 300, root: root! });
  await home.run((eventLog) => write(eventLog, 1));
  expect(known(home).position).toBe(301);
  expect(home.warnings).toEqual([]);
});

test("a truncated log is refused with its end and the known number of events", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 9));
  tamper(home.files.log, "DELETE FROM events WHERE position > 6");
  const message = await refusal(home.run());
  expect(message).toContain("the log ends at position 6");
  expect(message).toContain("knew 9 events");
  expect(message).toContain("--accept-loss");
  // A second start is refused with the same message. So the first refusal has not replaced the known checkpoint by one
  // of the truncated log.
  expect(await refusal(home.run())).toBe(message);
});

test("a log with a recomputed chain is refused", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 9));
  tamper(home.files.log, `UPDATE events SET data = '{"text":"other"}' WHERE position = 4`);
  rebuildChain(home.files.log);
  expect(await refusal(home.run())).toContain("altered at position 9 or before");
});

test("another log of the same length in the log's place is refused", async () => {
  const [home, other] = [house(), house()];
  for (const { run } of [home, other]) await run((eventLog) => write(eventLog, 9));
  rmSync(home.files.log);
  writeFileSync(home.files.log, readFileSync(other.files.log));
  expect(await refusal(home.run())).toContain("is of another log");
});

test("a start verifies the events after an old checkpoint", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 5));
  const old = readFileSync(home.files.checkpoint);
  await home.run((eventLog) => write(eventLog, 5));
  writeFileSync(home.files.checkpoint, old);
  await home.run();
  writeFileSync(home.files.checkpoint, old);
  tamper(home.files.log, `UPDATE events SET data = '{"text":"other"}' WHERE position = 8`);
  expect(await refusal(home.run())).toContain("the chain is broken at position 8");
});

test("a malformed checkpoint or one signed with another key is refused", async () => {
  const home = house();
  await home.run((eventLog) => write(eventLog, 3));
  const good = readFileSync(home.files.checkpoint, "utf8");
  writeFileSync(home.files.checkpoint, good.slice(0, -10));
  expect(await refusal(home.run())).toContain("cannot be read");
  writeFileSync(home.files.checkpoint, good);
  rmSync(home.files.signingKey);
  expect(await refusal(home.run())).toContain("log.signing.pem was gone");
  // The log now has a new key, which cannot prove the old key's signatures.
  expect(await refusal(home.run())).toContain("not signed by the log's key");
});

test("a signing key that other users can read is refused", async () => {
  const home = house();
  await home.run();
  chmodSync(home.files.signingKey, 0o644);
  const refused = await home.run().catch((fault: Error) => fault.message);
  expect(refused).toContain("has mode 0644");
});

test("a missing checkpoint causes a warning only if there was one before", async () => {
  const home = house();
  {
    // Creates the log as a version of reachlog without checkpoints left it.
    await using store = await openSqliteStore<Event>({ file: home.files.log, codec });
    await write(createEventLog(store, makeId), 1);
  }
  await home.run((eventLog) => write(eventLog, 1));
  expect(home.warnings).toEqual([]);
  rmSync(home.files.checkpoint);
  await home.run();
  expect(home.warnings).toEqual([expect.stringContaining("checkpoint is gone")]);
});

test("an accepted loss is recorded once with the known head and not refused again", async () => {
  const home = house();
  let expected_hash: string | undefined;
  await home.run(async (eventLog) => {
    await write(eventLog, 9);
    expected_hash = (await eventLog.store.head()).hash;
    await eventLog.store.snapshots.save("stats", { version: 1, position: 9, state: "{}" });
  });
  tamper(home.files.log, "DELETE FROM events WHERE position > 6");
  await home.run(async ({ store }) => {
    // The snapshot is gone, because it could contain data from the lost events.
    expect(await store.snapshots.load("stats")).toBeUndefined();
  }, true);
  const accepted = (await eventsOf(home)).at(-1);
  expect(accepted).toMatchObject({
    type: "LogLossAccepted",
    data: { reason: "lost_tail", expected_position: 9, expected_hash, found_position: 6 },
  });
  await home.run();
  // The flag that accepts a loss has no effect if nothing is lost.
  await home.run(undefined, true);
  expect((await eventsOf(home)).filter(({ type }) => type === "LogLossAccepted")).toHaveLength(1);
});

test("each kind of loss can be accepted and is recorded with its reason", async () => {
  const reasons: Record<string, (home: House, store: EventStore<Event>) => void> = {
    other_history({ files }) {
      tamper(files.log, "UPDATE events SET hash = zeroblob(32) WHERE position = 3");
    },
    unknown({ files }) {
      writeFileSync(files.checkpoint, "not a checkpoint");
    },
    other_log({ files }) {
      const key = loadSigningKey(files.signingKey);
      const foreign = { origin: "reachlog/other", position: 3, hash: "0".repeat(64), time: undefined };
      writeFileSync(files.checkpoint, signCheckpoint(foreign, key));
    },
    broken_chain({ files }, store) {
      const key = loadSigningKey(files.signingKey);
      const empty = { origin: formatOrigin(store), position: 0, hash: "0".repeat(64), time: undefined };
      writeFileSync(files.checkpoint, signCheckpoint(empty, key));
      tamper(files.log, `UPDATE events SET data = '{"text":"other"}' WHERE position = 2`);
    },
  };
  for (const [reason, spoil] of Object.entries(reasons)) {
    const home = house();
    let log: EventStore<Event> | undefined;
    await home.run(async (eventLog) => {
      log = eventLog.store;
      await write(eventLog, 3);
    });
    spoil(home, log!);
    await refusal(home.run());
    await home.run(undefined, true);
    const { data } = (await eventsOf(home)).at(-1)!;
    expect(data).toMatchObject({ reason, found_position: 3 });
    expect("expected_position" in (data as object)).toBe(reason !== "unknown");
    await home.run();
  }
});

test("the checkpoint of an empty log accepts another log in its place", async () => {
  const home = house();
  await home.run();
  expect(readFileSync(home.files.checkpoint, "utf8").split("\n")[1]).toBe("0");
  rmSync(home.files.log);
  await home.run((eventLog) => write(eventLog, 3));
  await home.run();
});

describe("a checkpoint in the vault", () => {
  const inVault = (notes = newNotes(), seed = 5) => {
    return () => checkpointInVault(notes, new Uint8Array(32).fill(seed));
  };

  test("detects a lost tail without any file", async () => {
    const home = house(inVault());
    await home.run((eventLog) => write(eventLog, 9));
    expect([home.files.checkpoint, home.files.signingKey].map(existsSync)).toEqual([false, false]);
    await home.run();
    tamper(home.files.log, "DELETE FROM events WHERE position > 6");
    expect(await refusal(home.run())).toContain("the log ends at position 6, but the checkpoint in the vault knew 9");
    await home.run(undefined, true);
    expect((await eventsOf(home)).at(-1)).toMatchObject({ type: "LogLossAccepted", data: { reason: "lost_tail" } });
    expect(home.warnings).toEqual(["a loss was accepted"]);
  });

  test("causes no warning if it is missing before the first start of a service", async () => {
    const filled = house();
    await filled.run((eventLog) => write(eventLog, 2));
    const home = house(inVault());
    writeFileSync(home.files.log, readFileSync(filled.files.log));
    await home.run();
    expect(home.warnings).toEqual([]);
  });

  test("is refused if it was signed with another seed", async () => {
    const notes = newNotes();
    const home = house(inVault(notes));
    await home.run((eventLog) => write(eventLog, 2));
    const other = house(inVault(notes, 6));
    writeFileSync(other.files.log, readFileSync(home.files.log));
    expect(await refusal(other.run())).toContain("not signed by the log's key");
  });
});
