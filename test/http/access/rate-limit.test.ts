// These tests call the code directly.
import { expect, test } from "bun:test";
import { createRateLimit } from "../../../src/http/access/rate-limit.ts";

function limitOf(limit: number) {
  const clock = { now: 1_000_000 };
  return {
    clock,
    ...createRateLimit(
      () => limit,
      () => clock.now,
    ),
  };
}

test("requests beyond the limit wait for the rest of the minute", () => {
  const { clock, take } = limitOf(2);
  expect([take("a"), take("a"), take("a")]).toEqual([undefined, undefined, 60]);
  clock.now += 59_001;
  expect(take("a")).toBe(1);
  clock.now += 999;
  expect(take("a")).toBeUndefined();
});

test("a changed limit applies at once", () => {
  let limit = 4;
  const { take, allowance } = createRateLimit(
    () => limit,
    () => 0,
  );
  expect([take("a"), take("a")]).toEqual([undefined, undefined]);
  limit = 2;
  expect([take("a"), allowance("b").limit]).toEqual([60, 2]);
});

test("each address is counted separately", () => {
  const { take } = limitOf(1);
  expect([take("a"), take("b"), take("a")]).toEqual([undefined, undefined, 60]);
});

test("a flood of addresses resets the window, which bounds the memory", () => {
  const { take } = limitOf(1);
  take("first");
  for (let address = 1; address < 50_000; address++) take(`a${address}`);
  expect(take("first")).toBeUndefined();
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"],
  ["2001:0DB8:0001:0002::a", "2001:db8:1:2::b"],
  ["2001:db8::1", "2001:db8:0:0:1::"],
  ["::1", "::2"],
  ["fe80::1%eth0", "fe80::2"],
])("%s and %s count as one caller", (one, other) => {
  const { take } = limitOf(1);
  expect([take(one), take(other)]).toEqual([undefined, 60]);
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:3::1"],
  ["192.0.2.1", "192.0.2.2"],
])("%s and %s count as two callers", (one, other) => {
  const { take } = limitOf(1);
  expect([take(one), take(other)]).toEqual([undefined, undefined]);
});
