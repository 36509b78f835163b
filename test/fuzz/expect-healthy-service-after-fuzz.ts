import { expect } from "bun:test";
import type { Deployment } from "./fixed-deployments.ts";
import type { FuzzReport } from "./send-generated-requests-to-service.ts";

/**
 * Maximum growth of the service's memory, in MiB, from before the fuzz test's requests until after them. Projections
 * keep data of the new events; more growth suggests a leak.
 */
const KEPT_MIB_MAX = 150;

/**
 * Memory in MiB that the requests may need for a while: for exports of the whole log, folds of the past and lists, all
 * in parallel.
 */
const TAKEN_MIB_MAX = 500;

/** Prints the figures and checks the state of the service afterwards. */
export function expectSound({ name }: Deployment, report: FuzzReport): void {
  const { requests, statuses, seen, operations, peakMiB, startMiB, restMiB, health, verify } = report;
  const byStatus = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status} × ${count}`);
  console.log(
    `fuzz, ${name}: ${requests} requests to ${operations} operations, ${seen.size} documented answers seen\n` +
      `  ${byStatus.join(", ")}\n` +
      `  memory ${startMiB.toFixed()} → at most ${peakMiB.toFixed()}, then ${restMiB.toFixed()} MiB; health ${health.join()}; audit verify ${verify.code}`,
  );
  expect([...statuses.keys()].filter((status) => status >= 500 && ![502, 503, 504].includes(status))).toEqual([]);
  expect([...health, verify.code]).toEqual([200, 200, 0]);
  expect(peakMiB - startMiB).toBeLessThan(TAKEN_MIB_MAX);
  expect(restMiB - startMiB).toBeLessThan(KEPT_MIB_MAX);
}
