// These tests call the code directly.
import { expect, test } from "bun:test";
import { nextTurn } from "../../src/platform/work-in-time-slices.ts";
import { createOutcomeBatching } from "../../src/delivery/outcome-recorder.ts";

const ENOUGH = 3;

/** Fake recording of one channel's outcomes, whose writes end when the test says so. */
function heldRecording(waiting: () => number = () => 1) {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let writes = 0;
  const write = (): Promise<void> => {
    writes++;
    begin();
    return ended;
  };
  return { waiting, write, begun, end, writes: () => writes };
}

test("channels that record at the same time share a round and wait for each other", async () => {
  const batchOutcomes = createOutcomeBatching(ENOUGH);
  const [one, other] = [heldRecording(), heldRecording()];
  let done = false;
  const recorded = batchOutcomes(one).then(() => (done = true));
  const alsoRecorded = batchOutcomes(other);
  await one.begun;
  expect(other.writes()).toBe(1);
  one.end();
  await nextTurn();
  expect(done).toBe(false);
  other.end();
  await Promise.all([recorded, alsoRecorded]);
  expect([one.writes(), other.writes()]).toEqual([1, 1]);
});

test("a round begins after the previous one ends", async () => {
  const batchOutcomes = createOutcomeBatching(ENOUGH);
  const [one, late] = [heldRecording(), heldRecording()];
  const recorded = batchOutcomes(one);
  await one.begun;
  const lateRecorded = batchOutcomes(late);
  for (let round = 0; round < 2 * ENOUGH; round++) await nextTurn();
  expect(late.writes()).toBe(0);
  one.end();
  await recorded;
  await late.begun;
  late.end();
  await lateRecorded;
});

test("a round stops gathering even if answers keep arriving", async () => {
  const batchOutcomes = createOutcomeBatching(Infinity);
  let asked = 0;
  const growing = heldRecording(() => ++asked);
  const recorded = batchOutcomes(growing);
  await growing.begun;
  growing.end();
  await recorded;
});

test("a round gathers while answers arrive, until a channel has enough", async () => {
  const batchOutcomes = createOutcomeBatching(ENOUGH);
  let answered = 1;
  const answering = (async () => {
    for (let round = 0; round < 2 * ENOUGH; round++, answered++) await nextTurn();
  })();
  const busy = heldRecording(() => answered);
  const quiet = heldRecording();
  const recorded = [batchOutcomes(busy), batchOutcomes(quiet)];
  await busy.begun;
  expect(answered).toBe(ENOUGH);
  busy.end();
  quiet.end();
  await Promise.all([...recorded, answering]);
});
