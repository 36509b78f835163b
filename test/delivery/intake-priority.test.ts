// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createIntakePriority } from "../../src/delivery/pace-and-circuit-breaker.ts";
import { fakeChannel } from "../harness/in-process/fake-channel.ts";
import { fakeTime } from "../harness/in-process/fake-time.ts";
import { NOTIFY, openDelivery } from "../harness/in-process/delivery.ts";

const NOW = Date.parse("2026-11-20T10:00:00.000Z");

/**
 * Creates the rule by which delivery yields to HTTP requests. The service has received `perSecond` requests a second
 * for one second, and continues to receive them.
 */
function under(perSecond: number) {
  let now = NOW;
  const intakePriority = createIntakePriority(() => ((now - NOW) / 1_000) * perSecond);
  const at = (ms: number): number => (now = NOW + ms);
  intakePriority.isBusy(at(0));
  intakePriority.isBusy(at(1_000));
  return { intakePriority, at };
}

describe("the share of delivery", () => {
  test("is unlimited while few requests arrive", () => {
    const { intakePriority, at } = under(999);
    expect(intakePriority.share(at(1_050))).toBe(Infinity);
  });

  test("is the saved budget, then a fixed rate, while many requests arrive", () => {
    const { intakePriority, at } = under(1_000);
    expect(intakePriority.share(at(1_050))).toBe(250);
    intakePriority.took(250);
    expect(intakePriority.share(at(1_050))).toBe(0);
    expect(intakePriority.share(at(1_100))).toBe(25);
    expect(intakePriority.share(at(9_100))).toBe(250);
  });

  test("is unlimited again soon after the last request", () => {
    let requests = 0;
    const intakePriority = createIntakePriority(() => requests);
    intakePriority.isBusy(NOW);
    requests = 1_000;
    expect(intakePriority.isBusy(NOW + 100)).toBe(true);
    expect(intakePriority.isBusy(NOW + 149)).toBe(true);
    expect(intakePriority.isBusy(NOW + 150)).toBe(false);
  });

  test("neither stops nor grows when the clock is set back", () => {
    const { intakePriority, at } = under(5_000);
    intakePriority.took(intakePriority.share(at(1_050)));
    expect(intakePriority.isBusy(at(-600_000))).toBe(false);
    expect(intakePriority.share(at(-599_900))).toBe(0);
    expect(intakePriority.share(at(-599_000))).toBe(250);
  });
});

test("under load, clicks are sent at their share and direct sends at once", async () => {
  const time = fakeTime(NOW);
  let until = NOW + 2_000;
  const requests = (): number => Math.min(time.clock(), until) - NOW + 1_000;
  const chat = fakeChannel("chat");
  await using house = await openDelivery({ channels: [chat], time, requests });
  const clicksSent = (): number => chat.sent.filter(({ kind }) => kind === "click").length;

  await house.until(NOW + 100);
  await house.clicks(2_000);
  await house.until(NOW + 1_100);
  expect(clicksSent()).toBeWithin(500, 760);
  await house.append(NOTIFY);
  await house.until(NOW + 1_101);
  expect(chat.sent.at(-1)?.kind).toBe("notification");
  expect(clicksSent()).toBeLessThan(760);

  until = time.clock();
  await house.until(NOW + 1_300);
  // Waits until the outcomes are in the log, which takes longer on a busy machine.
  await house.settled("chat");
  expect(clicksSent()).toBe(2_000);
});
