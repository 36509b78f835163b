import { expect } from "bun:test";
import { arrivedByName, untilSettled, type Lives } from "./killed-services.ts";
import type { NetworkRow } from "./delivery-network-table.ts";
import { logOf, recordsOf, type Logged, type DispatchRecord } from "./delivery-records.ts";
import { stop } from "../harness/process.ts";

/**
 * Waits until all dispatches are settled, then stops the service with SIGTERM. Returns the log and the channel's
 * dispatches.
 */
export async function ended(
  lives: Lives,
  row: NetworkRow,
): Promise<{ readonly log: readonly Logged[]; readonly all: readonly DispatchRecord[] }> {
  const { world, kills } = lives;
  await untilSettled(lives);
  expect(await stop(await lives.service())).toBe(0);
  const log = await logOf(world);
  return { log, all: recordsOf(log, row, { arrived: arrivedByName(row, world), kills }) };
}
