// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { WHOLE } from "./fixed-deployments.ts";
import { fuzz } from "./send-generated-requests-to-service.ts";
import { expectSound } from "./expect-healthy-service-after-fuzz.ts";

const REQUESTS = 1_500;

test(`the service answers ${REQUESTS} requests generated from its OpenAPI document as documented`, async () => {
  // The seed makes the requests the same in each run. The fault tests send more requests, with new seeds.
  const report = await fuzz({ requests: REQUESTS, seed: 20_261, deployment: WHOLE });
  expectSound(WHOLE, report);
  expect(report.requests).toBeGreaterThanOrEqual(REQUESTS);
});
