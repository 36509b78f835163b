// These tests call the code directly.
import { expect, test } from "bun:test";
import { createStreamPace } from "../../../src/http/streams/event-stream.ts";

const START = Date.UTC(2026, 2, 1);

/**
 * Creates a stream pace, which limits event streams while HTTP requests wait, on a simulated clock. The clock advances
 * while the stream pace sleeps. In each ms of that clock, `perMs` HTTP requests arrive.
 */
function openPace(perMs: number) {
  const state = { now: START, requests: 0, perMs };
  const pass = (ms: number): void => {
    state.now += ms;
    state.requests += ms * state.perMs;
  };
  const pace = createStreamPace(
    () => state.requests,
    () => state.now,
    async (ms) => pass(ms),
  );
  /** Sends this number of events in batches. Returns the simulated ms that this takes. */
  const send = async (events: number, batch = 100): Promise<number> => {
    const startedAt = state.now;
    for (let left = events; left > 0; left -= batch) {
      const sent = await pace.turn(new AbortController().signal);
      sent(batch);
      pass(1);
    }
    return state.now - startedAt;
  };
  // In this call the stream pace reads the number of HTTP requests for the first time.
  void pace.turn(new AbortController().signal);
  return { state, pass, pace, send };
}

/**
 * Creates a stream pace on a simulated clock while HTTP requests arrive all the time. Several streams can wait for the
 * pace at the same time.
 */
function openBusyPace() {
  const waiting: { readonly at: number; readonly wake: () => void }[] = [];
  let now = START;
  const pace = createStreamPace(
    () => now * 5,
    () => now,
    (ms) => new Promise((wake) => waiting.push({ at: now + ms, wake })),
  );
  void pace.turn(new AbortController().signal);
  const pass = async (ms: number): Promise<void> => {
    for (const until = now + ms; now < until;) {
      now++;
      for (const waiter of waiting.splice(0)) {
        if (waiter.at <= now) waiter.wake();
        else waiting.push(waiter);
      }
      await new Promise(setImmediate);
    }
  };
  return { pace, pass };
}

test("under low load a stream runs at its reader's pace, without a debt under later load", async () => {
  const { state, pass, send } = openPace(0.5);
  pass(100);
  expect(await send(10_000)).toBe(100);
  state.perMs = 5;
  pass(100);
  expect(await send(100)).toBe(1);
});

test.each([10, 100, 500])(
  "under high load all streams together send 2,000 events a second, %d at a time",
  async (batch) => {
    const { pass, send } = openPace(5);
    pass(100);
    expect(await send(10_000, batch)).toBeWithin(4_700, 5_300);
  },
);

test("waiting streams continue in the order of their requests", async () => {
  const { pace, pass } = openBusyPace();
  await pass(100);
  const gone: number[] = [];
  for (let stream = 1; stream <= 20; stream++) {
    void pace.turn(new AbortController().signal).then((sent) => {
      gone.push(stream);
      // A stream first reads its events, so it says only a moment later that it has sent them.
      setImmediate(() => sent(128));
    });
  }
  await pass(320);
  expect(gone).toEqual([1, 2, 3, 4, 5, 6]);
  await pass(1_000);
  expect(gone).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
});

test("a waiting stream continues about a second after the load ends", async () => {
  const { state, pass, send } = openPace(5);
  pass(100);
  await send(10_000, 10_000);
  state.perMs = 0;
  expect(await send(100)).toBeLessThan(1_100);
});

test("a stream without a reader does not wait and delays no other stream", async () => {
  const { state, pass, pace, send } = openPace(5);
  pass(100);
  await send(2_000, 2_000);
  const asked = state.now;
  for (let time = 1; time <= 100; time++) {
    const sent = await pace.turn(AbortSignal.abort());
    sent(0);
  }
  expect(state.now).toBe(asked);
  expect(await send(100)).toBeWithin(900, 1_100);
});
