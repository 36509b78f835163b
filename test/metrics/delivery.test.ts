// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { Registry } from "prom-client";
import { createDispatchMetrics } from "../../src/metrics/delivery.ts";
import { openDelivery } from "../harness/in-process/delivery.ts";
import {
  DELIVERED,
  fakeChannel,
  IN_DOUBT,
  REFUSED,
  throttled,
  type Answer,
} from "../harness/in-process/fake-channel.ts";
import { parseExposition } from "./parse-prometheus-text.ts";

/** Lets a network give this answer to `clicks` clicks. Returns the metrics of outcomes and requests of its channel. */
async function counted(clicks: number, answer: Answer): Promise<Readonly<Record<string, number>>> {
  const registry = new Registry();
  await using house = await openDelivery({
    channels: [fakeChannel("chat", answer), fakeChannel("ads")],
    metrics: createDispatchMetrics(registry),
  });
  await house.clicks(clicks, ["chat"]);
  await house.until(house.time.clock() + 3_600_000);
  const samples = parseExposition(await registry.metrics()).filter(
    ({ labels, value }) => labels["channel"] === "chat" && value > 0,
  );
  return Object.fromEntries(
    samples.flatMap(({ name, labels, value }) => {
      if (name === "reachlog_dispatches_total") return [[labels["outcome"] ?? "", value] as const];
      return name === "reachlog_dispatch_request_seconds_count" ? [["requests", value] as const] : [];
    }),
  );
}

test.each<[string, Answer, object]>([
  ["a delivered dispatch", () => DELIVERED, { succeeded: 3, requests: 3 }],
  ["a refused dispatch", () => REFUSED, { abandoned: 3, requests: 3 }],
  ["a dispatch in doubt", () => IN_DOUBT, { in_doubt: 3, requests: 3 }],
  ["a skipped dispatch", () => ({ outcome: "skipped", reason: "no_user_agent" }), { skipped: 3, requests: 3 }],
  [
    "a dispatch that a retry delivers",
    (_, attempt) => (attempt === 1 ? throttled(1_000) : DELIVERED),
    { failed: 3, succeeded: 3, requests: 6 },
  ],
])("%s is counted", async (_what, answer, counts) => {
  expect(await counted(3, answer)).toEqual(counts as never);
});
