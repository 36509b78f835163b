// On no harness.
import { afterAll, beforeEach, expect, spyOn, test } from "bun:test";
import { BELIEVED_MS, startBelief } from "../../src/privacy/belief.ts";

/** Milliseconds. */
let now = 0;
const time = spyOn(performance, "now").mockImplementation(() => now);
afterAll(() => time.mockRestore());
beforeEach(() => (now = 1_000));

/** A store that answers when the test says so, with its revision of when it was asked. */
async function openBelief() {
  const asked: (() => void)[] = [];
  const world = { revision: 1, refreshed: 0 };
  const revision = async (): Promise<number> => {
    const { revision: found } = world;
    const answered = Promise.withResolvers<void>();
    asked.push(answered.resolve);
    await answered.promise;
    return found;
  };
  const starting = startBelief({ revision }, () => void world.refreshed++);
  asked.shift()?.();
  const belief = await starting;
  return { world, belief, asked, answer: () => asked.shift()?.() };
}

/** Whether it is settled by now, after everything that waits for nothing else. */
async function isDone(promise: Promise<void> | undefined): Promise<boolean> {
  let done = false;
  void promise?.then(() => (done = true));
  await new Promise(setImmediate);
  return done;
}

test("what the store answered is believed from when it was asked, and not from when the answer came", async () => {
  const { belief, answer, asked } = await openBelief();
  const renewed = belief.renew();
  now += BELIEVED_MS - 1;
  answer();
  await renewed;
  expect(belief.renew()).toBeUndefined();
  // Asked ahead of time; nobody waits for it.
  expect(asked).toHaveLength(1);
  now += 1;
  expect(await isDone(belief.renew())).toBe(false);
});

test("who comes later waits for an answer of after they came, where the one on its way is too old", async () => {
  const { world, belief, answer, asked } = await openBelief();
  const early = belief.renew();
  world.revision = 2;
  now += BELIEVED_MS;
  const late = belief.renew();
  answer();
  expect([await isDone(early), world.refreshed]).toEqual([true, 0]);
  expect(await isDone(late)).toBe(false);
  expect(asked).toHaveLength(1);
  answer();
  expect([await isDone(late), world.refreshed]).toEqual([true, 1]);
});

test("doubted, what is held is believed again once the store was asked after that", async () => {
  const { world, belief, answer } = await openBelief();
  const before = belief.renew();
  answer();
  await before;
  expect(belief.renew()).toBeUndefined();
  now += BELIEVED_MS * 0.75;
  // Asked ahead of time, and still on its way.
  expect(belief.renew()).toBeUndefined();
  world.revision = 2;
  belief.doubt();
  const after = belief.renew();
  answer();
  expect([await isDone(after), world.refreshed]).toEqual([false, 0]);
  answer();
  expect([await isDone(after), world.refreshed]).toEqual([true, 1]);
  expect(belief.renew()).toBeUndefined();
});

test("a store that does not answer in time, or fails, is asked again by who needs it", async () => {
  let calls = 0;
  const belief = await startBelief(
    {
      async revision() {
        if (calls++ === 1) throw new Error("the connection was lost");
        now += 2 * BELIEVED_MS;
        return 1;
      },
    },
    () => {},
  );
  const refused = await belief.renew()?.catch((fault: unknown) => fault);
  expect(String(refused)).toContain("the connection was lost");
  // Slower than what is held is believed for: the answer was asked for after they came, so it counts.
  await belief.renew();
  expect(calls).toBe(3);
});
