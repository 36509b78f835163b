import { expect } from "bun:test";
import { arrivedByName, untilSettled, type Lives } from "./delivery-lives.ts";
import type { NetworkRow } from "./delivery-networks.ts";
import { logOf, toldOf, type Logged, type Told } from "./delivery-told.ts";
import { stop } from "../harness/process.ts";

/** The log and what it owed the channel, once all of that is settled and the service is suspended in order. */
export async function ended(
  lives: Lives,
  row: NetworkRow,
): Promise<{ readonly log: readonly Logged[]; readonly all: readonly Told[] }> {
  const { world, kills } = lives;
  await untilSettled(lives);
  expect(await stop(await lives.service())).toBe(0);
  const log = await logOf(world);
  return { log, all: toldOf(log, row, { arrived: arrivedByName(row, world), kills }) };
}
