// On no harness.
import { expect, test } from "bun:test";
import { createStreamPace } from "../../src/http/stream-pace.ts";

const START = Date.UTC(2026, 2, 1);

/** A pace on a clock that its waits move; `perMs`: requests that come. */
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
  const never = new AbortController().signal;
  /** Milliseconds until so many events in batches of a hundred were sent. */
  const send = async (events: number): Promise<number> => {
    const startedAt = state.now;
    for (let sent = 0; sent < events; sent += 100) {
      await pace.turn(never);
      pace.sent(100);
      pass(1);
    }
    return state.now - startedAt;
  };
  // From here on it knows how many came.
  pace.sent(0);
  return { state, pass, pace, send };
}

test("while few requests come, a stream goes on at its reader's pace, and nothing is held against it when more come", async () => {
  const { state, pass, pace, send } = openPace(0.5);
  expect(await send(10_000)).toBe(100);
  state.perMs = 5;
  pass(100);
  const asked = state.now;
  await pace.turn(new AbortController().signal);
  expect(state.now).toBe(asked);
});

test("while requests wait for each other, all streams together go on at 2,000 events a second", async () => {
  const { pass, send } = openPace(5);
  pass(100);
  expect(await send(10_000)).toBeWithin(4_800, 5_200);
});

test("a stream that waits goes on within a second after the requests have ended", async () => {
  const { state, pass, pace, send } = openPace(5);
  pass(100);
  await send(200);
  pace.sent(1_000_000);
  state.perMs = 0;
  expect(await send(100)).toBeLessThan(1_100);
});

test("a stream whose reader went waits no longer", async () => {
  const { state, pass, pace } = openPace(5);
  pass(100);
  pace.sent(1_000_000);
  const asked = state.now;
  await pace.turn(AbortSignal.abort());
  expect(state.now).toBe(asked);
});
