import { expect } from "bun:test";
import type { Deployment } from "./deployments.ts";
import type { FuzzReport } from "./fuzz.ts";

/** What the requests may add to the service's memory: those in flight, and what its projections learn of them. */
const GROWTH_MIB_MAX = 150;

/** Prints what was seen, and checks how the service came out of it. */
export function expectSound({ name }: Deployment, report: FuzzReport): void {
  const { requests, statuses, seen, operations, peakMiB, startMiB, health, verify } = report;
  const byStatus = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status} × ${count}`);
  console.log(
    `fuzz, ${name}: ${requests} requests to ${operations} operations, ${seen.size} documented answers seen\n` +
      `  ${byStatus.join(", ")}\n` +
      `  memory ${startMiB.toFixed()} → at most ${peakMiB.toFixed()} MiB; health ${health.join()}; audit verify ${verify.code}`,
  );
  expect([...statuses.keys()].filter((status) => status >= 500 && ![502, 503, 504].includes(status))).toEqual([]);
  expect([...health, verify.code]).toEqual([200, 200, 0]);
  expect(peakMiB - startMiB).toBeLessThan(GROWTH_MIB_MAX);
}
