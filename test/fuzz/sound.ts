import { expect } from "bun:test";
import type { Deployment } from "./deployments.ts";
import type { FuzzReport } from "./fuzz.ts";

/** What the requests may leave in the service's memory: what its projections learn of them. */
const KEPT_MIB_MAX = 150;

/** What they may take meanwhile: exports of the whole log, folds to the past and lists that are read, side by side. */
const TAKEN_MIB_MAX = 500;

/** Prints what was seen, and checks how the service came out of it. */
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
