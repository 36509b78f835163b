import { appendContract } from "./contract/append.ts";
import { chainContract } from "./contract/chain-head-and-verify.ts";
import { closeContract } from "./contract/close.ts";
import { cursorContract, snapshotContract } from "./contract/cursors-and-snapshots.ts";
import { idempotencyContract } from "./contract/idempotency.ts";
import { leaseContract } from "./contract/leases.ts";
import { modelContract } from "./contract/random-appends-match-model.ts";
import { readContract, storedContract } from "./contract/read.ts";
import { refusalContract } from "./contract/refusals.ts";
import type { Runner } from "./contract/test-runner-interface.ts";
import { subscribeContract } from "./contract/subscribe.ts";

/** The tests that every event store has to pass. Call it from a test file of your runner. */
export function storeContract(name: string, runner: Runner): void {
  runner.describe(`the event store contract: ${name}`, () => {
    for (const contract of CONTRACTS) contract(runner);
  });
}

const CONTRACTS: readonly ((runner: Runner) => void)[] = [
  appendContract,
  refusalContract,
  idempotencyContract,
  modelContract,
  readContract,
  storedContract,
  subscribeContract,
  chainContract,
  cursorContract,
  snapshotContract,
  leaseContract,
  closeContract,
];
