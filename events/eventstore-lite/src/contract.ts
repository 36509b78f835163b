import { describe } from "bun:test";
import { appendContract } from "./contract/append.ts";
import { chainContract } from "./contract/chain.ts";
import { closeContract } from "./contract/close.ts";
import { cursorContract } from "./contract/cursor.ts";
import { idempotencyContract } from "./contract/idempotency.ts";
import { leaseContract } from "./contract/leases.ts";
import { modelContract } from "./contract/model.ts";
import type { OpenStore } from "./contract/open-store.ts";
import { readContract } from "./contract/read.ts";
import { refusalContract } from "./contract/refusals.ts";
import { snapshotContract } from "./contract/snapshots.ts";
import { storedContract } from "./contract/stored.ts";
import { subscribeContract } from "./contract/subscribe.ts";

export type { OpenStore } from "./contract/open-store.ts";

/**
 * What every event store has to do, whatever it keeps its events in; to be called from a file of `bun test`.
 * `open` gives a new, empty store each time.
 */
export function storeContract(name: string, open: OpenStore): void {
  describe(`the event store contract: ${name}`, () => {
    appendContract(open);
    refusalContract(open);
    idempotencyContract(open);
    modelContract(open);
    readContract(open);
    storedContract(open);
    subscribeContract(open);
    chainContract(open);
    cursorContract(open);
    snapshotContract(open);
    leaseContract(open);
    closeContract(open);
  });
}
