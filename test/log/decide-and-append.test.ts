// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { LeaseLost, openSqliteStore, type EventStore } from "eventstore-lite";
import { codec, type Event } from "../../events/event-types-and-codec.ts";
import { makeId, sleep } from "../../src/platform/clock-ids-and-timers.ts";
import { createEventLog, STREAMS, type NewEvent, type StateContext } from "../../src/log/event-log.ts";
import { ATTEMPTS_MAX, handle } from "../../src/log/decide-and-append.ts";
import { takeLease } from "../../src/log/leases-and-roles.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { METADATA, newLogFile, SILENT, toStateContext } from "../harness/in-process/temporary-log.ts";

const skipOf = (id: string): NewEvent => ({
  type: "DirectMessageSkipped",
  data: { run_id: "r", recipient: { id }, reason: "self" },
});

interface House extends AsyncDisposable {
  readonly deps: StateContext;
  readonly store: EventStore<Event>;
  readonly projector: Projector;
  /** Delays between the attempts to append, in ms and in order. */
  readonly waits: number[];
  append(...newEvents: NewEvent[]): Promise<void>;
}

async function openHouse(clock = Date.now): Promise<House> {
  const store = await openSqliteStore({ file: newLogFile(), codec, clock });
  const projector = await startProjector(store);
  const eventLog = createEventLog(store, makeId);
  const waits: number[] = [];
  return {
    deps: toStateContext({ eventLog, projector }, { sleep: async (ms) => void waits.push(ms) }),
    store,
    projector,
    waits,
    append: async (...newEvents) => void (await eventLog.append(STREAMS.outreach, newEvents, METADATA)),
    async [Symbol.asyncDispose]() {
      await projector[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
    },
  };
}

const skippedIn = ({ projector }: House): number => projector.state("stats").skipped;

describe("handle", () => {
  test("appends the decided events and resolves once the projections hold them", async () => {
    await using house = await openHouse();
    const handled = await handle(house.deps, STREAMS.outreach, () => ({ events: [skipOf("1"), skipOf("2")] }), {
      metadata: METADATA,
    });
    expect(handled).toMatchObject({ appended: { first: 1, last: 2, version: 2, repeated: false } });
    expect(skippedIn(house)).toBe(2);
  });

  test("waits for lagging projections before it decides", async () => {
    await using house = await openHouse();
    await house.append(...Array.from({ length: 500 }, (_, index) => skipOf(String(index))));
    let seen: number | undefined;
    await handle(
      house.deps,
      STREAMS.outreach,
      () => {
        seen = skippedIn(house);
        return { events: [] };
      },
      { metadata: METADATA },
    );
    expect(seen).toBe(500);
  });

  test("returns a refusal and appends nothing", async () => {
    await using house = await openHouse();
    const handled = await handle(house.deps, STREAMS.outreach, () => ({ refusal: "no_consent" }), {
      metadata: METADATA,
    });
    expect(handled).toEqual({ refusal: "no_consent" });
    expect((await house.store.head()).position).toBe(0);
  });

  test("appends nothing for a decision without events", async () => {
    await using house = await openHouse();
    expect(await handle(house.deps, STREAMS.outreach, () => ({ events: [] }), { metadata: METADATA })).toEqual({
      events: [],
      appended: undefined,
    });
  });

  test("decides again on the newer state after a concurrent append to the stream", async () => {
    await using house = await openHouse();
    const seen: number[] = [];
    await handle(
      house.deps,
      STREAMS.outreach,
      () => {
        seen.push(skippedIn(house));
        // During the first decision, another append gets in before this one.
        if (seen.length === 1) void house.append(skipOf("rival"));
        return { events: [skipOf(`mine, having seen ${skippedIn(house)}`)] };
      },
      { metadata: METADATA },
    );
    expect(seen).toEqual([0, 1]);
    expect(skippedIn(house)).toBe(2);
  });

  test("decides again after a concurrent append of any event type", async () => {
    await using house = await openHouse();
    let decisions = 0;
    await handle(
      house.deps,
      STREAMS.outreach,
      () => {
        // Event of a type that none of the states about outreach uses.
        const stranger: NewEvent = { type: "KeyRotated", data: { from: "0123456789abcdef", to: "fedcba9876543210" } };
        if (++decisions === 1) void house.append(stranger);
        return { events: [skipOf("1")] };
      },
      { metadata: METADATA },
    );
    expect(decisions).toBe(2);
  });

  test("does not decide again after an append to another stream", async () => {
    await using house = await openHouse();
    let decisions = 0;
    const elsewhere = (): unknown => house.deps.eventLog.append("elsewhere", [skipOf("9")], METADATA);
    await handle(house.deps, STREAMS.outreach, () => (decisions++, void elsewhere(), { events: [skipOf("1")] }), {
      metadata: METADATA,
    });
    expect(decisions).toBe(1);
  });

  test("gives up after a bounded number of attempts with growing waits, and appends nothing", async () => {
    await using house = await openHouse();
    let decisions = 0;
    const contended = handle(
      house.deps,
      STREAMS.outreach,
      () => {
        decisions++;
        void house.append(skipOf(`rival ${decisions}`));
        return { events: [skipOf("mine")] };
      },
      { metadata: METADATA },
    );
    expect(await contended.catch((fault: unknown) => fault)).toMatchObject({
      kind: "busy",
      message: expect.stringContaining("each of 5 attempts"),
    });
    expect(decisions).toBe(ATTEMPTS_MAX);
    expect(house.waits).toEqual([5, 10, 20, 40]);
    const texts = await Array.fromAsync(house.store.read(), (event) => JSON.stringify(event.data));
    expect(texts).toHaveLength(ATTEMPTS_MAX);
    expect(texts.join()).not.toContain("mine");
  });

  test("fails with LeaseLost if another holder has the lease", async () => {
    await using house = await openHouse();
    const asked = { name: "run", holder: "one", ttlMs: 60_000, renewMs: 60_000 };
    await using lease = await takeLease({ ...house.deps, sleep, logger: SILENT }, asked);
    if (lease === undefined) throw new Error("another holder has it");
    await house.store.leases.acquire("run", { holder: "another", ttlMs: 1_000, steal: true });
    const fenced = handle(house.deps, STREAMS.outreach, () => ({ events: [skipOf("1")] }), {
      metadata: METADATA,
      lease,
    });
    expect(await fenced.catch((fault: unknown) => fault)).toBeInstanceOf(LeaseLost);
  });

  test("decides again if its lease expired before the append and is still free", async () => {
    let now = 1_000_000;
    await using house = await openHouse(() => now);
    const asked = { name: "run", holder: "one", ttlMs: 1_000, renewMs: 60_000 };
    await using lease = await takeLease({ ...house.deps, wallClock: () => now, sleep }, asked);
    if (lease === undefined) throw new Error("another holder has it");
    const decidedAt: number[] = [];
    const decide = () => {
      decidedAt.push(now);
      const decision = { events: [skipOf(String(now))] };
      // After its first decision, the process pauses before it appends.
      if (decidedAt.length === 1) now += 2_000;
      return decision;
    };
    await handle(house.deps, STREAMS.outreach, decide, { metadata: METADATA, lease });
    expect(decidedAt).toEqual([1_000_000, 1_002_000]);
    const recipients = await Array.fromAsync(house.store.read(), ({ data }) => data);
    expect(recipients).toMatchObject([{ recipient: { id: "1002000" } }]);
  });

  test("returns the first result for a repeat with the same key", async () => {
    await using house = await openHouse();
    const once = () =>
      handle(house.deps, STREAMS.outreach, () => ({ events: [skipOf("1")] }), { metadata: METADATA, key: "k" });
    await once();
    expect(await once()).toMatchObject({ appended: { first: 1, repeated: true } });
    expect(skippedIn(house)).toBe(1);
  });

  test("enforces a limit across concurrent decisions", async () => {
    await using house = await openHouse();
    const places = 3;
    const take = (name: string) =>
      handle<"full">(
        house.deps,
        STREAMS.outreach,
        () => (skippedIn(house) >= places ? { refusal: "full" } : { events: [skipOf(name)] }),
        { metadata: METADATA, attempts: 50 },
      );
    const handled = await Promise.all(Array.from({ length: 12 }, (_, index) => take(String(index))));
    expect(handled.filter((one) => "refusal" in one)).toHaveLength(12 - places);
    expect(skippedIn(house)).toBe(places);
  });
});
