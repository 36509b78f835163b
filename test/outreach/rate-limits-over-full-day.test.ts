// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { MINUTE_MS, openDay, WAY_MS, type Day } from "../harness/in-process/outreach-day-with-virtual-clock.ts";

/** Times when the sandbox's X accepted messages, ms since the epoch. */
function arrivals({ x }: Sandbox): number[] {
  return x.messages.kept.map(({ created_at }) => created_at);
}

/** Checks that X accepted messages to exactly 100 recipients, and only one to each. */
function expectFull({ sandbox }: Day): void {
  expect([sandbox.x.accepted.size, Math.max(...sandbox.x.accepted.values())]).toEqual([100, 1]);
}

test("a day of 100 messages follows the rate headers, and gets no 429 but the two that the test forces", async () => {
  await using day = await openDay({ dmLimit: 15 });
  const { sandbox, time } = day;
  // X answers with 429 twice in the middle of a rate-limit window: once without a retry time, and once with one.
  const forced = new Map([
    [20, {}],
    [70, { retryAfter: 90 }],
  ]);
  day.beforeSend = (arrived) => {
    const fault = forced.get(arrived);
    if (fault !== undefined) sandbox.faults.add({ network: "x", kind: "429", path: "/messages", count: 1, ...fault });
    forced.delete(arrived);
  };
  // An hour passes, so that the access token expires during the run.
  time.jump(60 * MINUTE_MS);
  const startedAt = time.now();
  expect(await day.run()).toMatchObject({ reason: "daily_limit_reached", sent: 100, failed: 0, in_doubt: 0 });
  expectFull(day);
  expect(sandbox.tally.x.answers[429]).toBe(2);
  expect([...sandbox.x.refreshUses.values()]).toEqual([1]);
  // The run takes as long as 100 messages at one a minute, plus the waits after the two 429s.
  expect((time.now() - startedAt) / MINUTE_MS).toBeWithin(90, 130);
});

test.each([
  ["ended a minute ago", -60],
  ["ends now", 0],
  ["ends in a year", 31_536_000],
])("after a 429 with a window that %s the run waits, and ends in bounded time", async (_what, retryAfter) => {
  await using day = await openDay({ dmLimit: 15, rateHeaders: false });
  const { sandbox, time } = day;
  sandbox.faults.add({ network: "x", kind: "429", path: "/messages", count: 3, retryAfter });
  const askedAt: number[] = [];
  day.beforeSend = () => {
    askedAt.push(time.now());
  };
  const report = await day.run();
  // A wait of a year is shortened to a day. That is still longer than a run may take, so the run ends after the first
  // refusal.
  const [reason, refusals] = retryAfter > 0 ? ["time_limit", 1] : ["daily_limit_reached", 3];
  expect(report).toMatchObject({ reason, in_doubt: 0 });
  expect(sandbox.tally.x.answers[429]).toBe(refusals);
  // Each request to send is made at least a second after the answer to the previous one.
  const waits = askedAt.slice(1).map((ms, index) => ms - 2 * WAY_MS - (askedAt[index] ?? 0));
  for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(1_000);
});

test("a day of 100 messages without rate headers sends one a minute, without a 429", async () => {
  await using day = await openDay({ dmLimit: 15, rateHeaders: false });
  expect(await day.run()).toMatchObject({ reason: "daily_limit_reached", sent: 100, failed: 0, in_doubt: 0 });
  expectFull(day);
  expect(day.sandbox.tally.x.answers[429] ?? 0).toBe(0);
  const at = arrivals(day.sandbox);
  const gaps = at.slice(1).map((ms, index) => (ms - (at[index] ?? 0)) / MINUTE_MS);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1);
  expect(Math.max(...gaps)).toBeLessThan(1.5);
});
