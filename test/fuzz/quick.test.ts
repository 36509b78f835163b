// On the process harness.
import { expect, test } from "bun:test";
import { WHOLE } from "./deployments.ts";
import { fuzz } from "./fuzz.ts";
import { expectSound } from "./expect-sound.ts";

const REQUESTS = 1_500;

test(`the service answers ${REQUESTS} requests generated from its OpenAPI document as documented`, async () => {
  // The same requests in each run; the long form in the fault tests uses new ones.
  const report = await fuzz({ requests: REQUESTS, seed: 20_261, deployment: WHOLE });
  expectSound(WHOLE, report);
  expect(report.requests).toBeGreaterThanOrEqual(REQUESTS);
});
