// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { openSqliteStore, type EventStore, type Query, type Snapshot } from "eventstore-lite";
import { StoreFull, StoreUnavailable } from "eventstore-lite/testing";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { PROJECTION_NAMES, projectionOf } from "../../projections/all.ts";
import { encodeState } from "../../projections/encode-state.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { newLogFile, SILENT } from "../harness/in-process/temporary-log.ts";

function skips(count: number): Event[] {
  return Array.from({ length: count }, () =>
    makeEvent("DirectMessageSkipped", makeId(), { run_id: "r", recipient: { id: "1" }, reason: "self" }, {}),
  );
}

async function skip(store: EventStore<Event>, count = 1): Promise<number> {
  return (await store.append("outreach", skips(count))).last;
}

function open(file = newLogFile()): Promise<EventStore<Event>> {
  return openSqliteStore({ file, codec });
}

function skippedOf(projector: Projector): number {
  return projector.state("stats").skipped;
}

/** Wraps the log and records which parts of it folds read, and the positions it was followed from. */
function watched(store: EventStore<Event>) {
  const folded: Query[] = [];
  const followedFrom: (number | undefined)[] = [];
  const seen: EventStore<Event> = {
    ...store,
    readFolded(query = {}) {
      folded.push(query);
      return store.readFolded(query);
    },
    subscribeBatches(query) {
      followedFrom.push(query.from);
      return store.subscribeBatches(query);
    },
  };
  return { store: seen, folded, followedFrom };
}

describe("a started projector", () => {
  test("holds the initial states on an empty log", async () => {
    await using store = await open();
    await using projector = await startProjector(store);
    expect([projector.position, projector.time]).toEqual([0, undefined]);
    for (const name of PROJECTION_NAMES) expect(projector.state(name)).toEqual(projectionOf(name).initial() as never);
  });

  test("has caught up with the log and knows the time of its last event", async () => {
    await using store = await open();
    const last = await skip(store, 300);
    await using projector = await startProjector(store);
    expect([projector.position, skippedOf(projector)]).toEqual([last, 300]);
    expect(projector.time).toBe((await store.head()).time);
  });

  test("announces each appended event once, in order, after folding it", async () => {
    await using store = await open();
    await using projector = await startProjector(store);
    const heard: [number, number][] = [];
    const unlisten = projector.listen(({ position }) => heard.push([position, skippedOf(projector)]));
    await projector.until(await skip(store, 3));
    await projector.until(await skip(store));
    unlisten();
    await projector.until(await skip(store));
    expect(heard).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
      [4, 4],
    ]);
    expect(skippedOf(projector)).toBe(5);
  });

  test("folds events that another connection appends", async () => {
    const file = newLogFile();
    await using store = await open(file);
    await using projector = await startProjector(store);
    await using command = await open(file);
    await projector.until(await skip(command, 2));
    await projector.until(await skip(store));
    expect(skippedOf(projector)).toBe(3);
  });
});

test("other work runs while a large batch is folded, and sees consistent states", async () => {
  await using store = await open();
  const last = await skip(store, 3_000);
  const events = await Array.fromAsync(store.read());
  const waiting: EventStore<Event> = {
    ...store,
    head: async () => ({ ...(await store.head()), position: 0 }),
    async *subscribeBatches(query) {
      yield events;
      yield* store.subscribeBatches({ ...query, from: events.length + 1 });
    },
  };
  await using projector = await startProjector(waiting, { saves: () => false, sliceMs: 0 });
  const seen = new Set<number>();
  const takeTurn = (): void => {
    seen.add(projector.position);
    expect(skippedOf(projector)).toBe(projector.position);
    if (projector.position < last) setImmediate(takeTurn);
  };
  takeTurn();
  await projector.until(last);
  expect(seen.size).toBeGreaterThanOrEqual(30);
});

describe("until", () => {
  test("resolves at once for a folded position, and in log order for later ones", async () => {
    await using store = await open();
    await skip(store, 2);
    await using projector = await startProjector(store);
    await projector.until(2);
    const reached: number[] = [];
    const waits = [5, 3, 4].map(async (position) => {
      await projector.until(position);
      reached.push(position);
      expect(projector.position).toBeGreaterThanOrEqual(position);
    });
    await skip(store, 3);
    await Promise.all(waits);
    expect(reached).toEqual([3, 4, 5]);
  });

  test("rejects with the fault that stopped the projector", async () => {
    await using store = await open();
    await using projector = await startProjector(store);
    const waiting = projector.until(10).catch((fault: unknown) => fault);
    projector.listen(() => {
      throw new Error("a broken listener");
    });
    await skip(store);
    expect(await projector.failed.catch((fault: unknown) => fault)).toEqual(new Error("a broken listener"));
    expect(await waiting).toEqual(new Error("a broken listener"));
    expect(projector.until(11)).rejects.toThrow("a broken listener");
  });
});

test("each event is folded once although the log was unavailable in between", async () => {
  await using store = await open();
  const attempts: number[] = [];
  const said: string[] = [];
  const away: EventStore<Event> = {
    ...store,
    async *subscribeBatches(query) {
      attempts.push(query.from);
      if (attempts.length === 2) throw new StoreUnavailable(new Error("no route to the server"));
      for await (const batch of store.subscribeBatches(query)) {
        yield batch.slice(0, 1);
        if (attempts.length < 3) throw new StoreUnavailable(new Error("the connection was lost"));
        yield batch.slice(1);
      }
    },
  };
  const logger = { ...SILENT, warn: (message: string) => void said.push(message) };
  await using projector = await startProjector(away, { logger });
  await projector.until(await skip(store, 3));
  expect([skippedOf(projector), attempts]).toEqual([3, [1, 2, 2]]);
  // The projector logs one line for the whole outage, however often it tries to read.
  expect(said).toHaveLength(1);
});

describe("snapshots", () => {
  async function fill(file: string, count: number): Promise<void> {
    await using store = await open(file);
    await using projector = await startProjector(store);
    await projector.until(await skip(store, count));
  }

  test("are saved at a stop, and the next start folds only later events", async () => {
    const file = newLogFile();
    await fill(file, 50);
    await using store = await open(file);
    await skip(store, 2);
    const reader = watched(store);
    await using projector = await startProjector(reader.store);
    expect([reader.folded, reader.followedFrom]).toEqual([[{ from: 51, to: 52 }], [53]]);
    expect(skippedOf(projector)).toBe(52);
  });

  test("are used if the log has not grown, and the log's time is known", async () => {
    const file = newLogFile();
    await fill(file, 3);
    await using store = await open(file);
    const reader = watched(store);
    await using projector = await startProjector(reader.store);
    expect(reader.folded).toEqual([]);
    expect([projector.position, skippedOf(projector)]).toEqual([3, 3]);
    expect(projector.time).toBe((await store.head()).time);
  });

  test("with another version are ignored, and only their projection is folded again", async () => {
    const file = newLogFile();
    await fill(file, 5);
    await using store = await open(file);
    expect((await store.snapshots.load("contacts"))?.position).toBe(5);
    const foreign: Snapshot = { version: 99, position: 5, state: '{"something":"else"}' };
    await store.snapshots.save("contacts", foreign);
    const reader = watched(store);
    await using projector = await startProjector(reader.store);
    expect(reader.folded).toEqual([{ from: 1, to: 5, types: projectionOf("contacts").types }]);
    expect(projector.state("contacts").people.size).toBe(1);
    expect(skippedOf(projector)).toBe(5);
  });

  test.each([projectionOf("stats").version, 99])(
    "ahead of a truncated log make the start fail (version %p)",
    async (version) => {
      await using store = await open();
      await skip(store, 2);
      const state = encodeState({ sent: 9, skipped: 9, failed: 9 });
      await store.snapshots.save("stats", { version, position: 3, state });
      const fault = await startProjector(store).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(fault).toMatchObject({ kind: "damaged" });
      expect((fault as Error).message).toMatch(/stats is of position 3.* ends at 2.*reachlog replay/);
    },
  );

  test("at different positions are each continued from there", async () => {
    const file = newLogFile();
    await fill(file, 4);
    await using store = await open(file);
    const { version } = projectionOf("account");
    const state = encodeState(projectionOf("account").initial());
    // The snapshot is removed first, because saving does not replace one at a later position.
    await store.snapshots.remove(["account"]);
    await store.snapshots.save("account", { version, position: 2, state });
    await skip(store, 3);
    const reader = watched(store);
    await using projector = await startProjector(reader.store);
    const { types } = projectionOf("account");
    expect(reader.folded).toEqual([
      { from: 3, to: 4, types },
      { from: 5, to: 7 },
    ]);
    expect([projector.position, skippedOf(projector)]).toEqual([7, 7]);
  });

  test("are not saved after a fault", async () => {
    const file = newLogFile();
    {
      await using store = await open(file);
      await using projector = await startProjector(store);
      projector.listen(() => {
        throw new Error("a broken listener");
      });
      await skip(store);
      await projector.failed.catch(() => {});
    }
    await using store = await open(file);
    expect(await store.snapshots.load("stats")).toBeUndefined();
  });

  /** Number of positions: enough for two snapshots of each projection. */
  const MANY = 40_000;

  async function skipMany(store: EventStore<Event>): Promise<number> {
    for (let done = 0; done < MANY; done += 10_000) await skip(store, 10_000);
    return MANY;
  }

  /** Wraps the log so that snapshots to be saved are only passed to `save`. */
  function keeping(store: EventStore<Event>, save: (name: string, snapshot: Snapshot) => Promise<void>) {
    return { ...store, snapshots: { ...store.snapshots, save } };
  }

  test("are saved at least every 20,000 positions, but only of states that have changed", async () => {
    await using store = await open();
    const saved: [string, number][] = [];
    const kept = keeping(store, (name, { position }) => {
      saved.push([name, position]);
      return Promise.resolve();
    });
    await using projector = await startProjector(kept);
    await projector.until(await skipMany(store));
    const positions = saved.filter(([name]) => name === "stats").map(([, position]) => position);
    expect(positions.length).toBeGreaterThanOrEqual(2);
    for (const [index, position] of [...positions, MANY].entries()) {
      // Two snapshots of a projection may be slightly more than 20,000 positions apart. The projections are saved one
      // after the other, at equal distances, and each distance is rounded up to a whole number of positions.
      expect(position - (positions[index - 1] ?? 0)).toBeLessThan(20_000 + PROJECTION_NAMES.length);
    }
    expect(new Set(saved.map(([name]) => name))).toEqual(
      new Set(["stats", "timeline", "run", "runs", "contacts", "deliveries", "news"]),
    );
  });

  test("are saved only while this instance is the one that saves them", async () => {
    await using store = await open();
    const saved: number[] = [];
    const kept = keeping(store, (_name, { position }) => {
      saved.push(position);
      return Promise.resolve();
    });
    let saves = false;
    await using projector = await startProjector(kept, { saves: () => saves });
    await projector.until(await skipMany(store));
    expect(saved).toEqual([]);
    saves = true;
    await skipMany(store);
    await projector.until(2 * MANY);
    expect(saved.length).toBeGreaterThan(0);
  });

  test("for a long log are saved before the start resolves", async () => {
    const file = newLogFile();
    await using store = await open(file);
    await skipMany(store);
    const saved: [string, number][] = [];
    const kept = keeping(store, (name, { position }) => {
      saved.push([name, position]);
      return Promise.resolve();
    });
    await using projector = await startProjector(kept);
    // Before the end, only the projections that fold some of these events are saved. At the end, all are.
    expect(saved.filter(([, position]) => position === MANY)).toEqual(PROJECTION_NAMES.map((name) => [name, MANY]));
    expect(new Set(saved.map(([, position]) => position))).toEqual(new Set([MANY / 2, MANY]));
    expect(skippedOf(projector)).toBe(MANY);
  });

  test("refused by a full disk do not stop the projector", async () => {
    await using store = await open();
    let refused = 0;
    const full = keeping(store, () => {
      refused++;
      return Promise.reject(new StoreFull());
    });
    await skipMany(store);
    await using projector = await startProjector(full);
    await skipMany(store);
    await projector.until(await skip(store));
    expect(skippedOf(projector)).toBe(2 * MANY + 1);
    expect(refused).toBeGreaterThan(PROJECTION_NAMES.length);
  });
});
