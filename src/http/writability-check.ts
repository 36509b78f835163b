import type { EventStore } from "eventstore-lite";
import { kindOf } from "../log/error-kind.ts";
import { BODY_BYTES_MAX } from "./body.ts";

/** Whether the log takes what callers bring. */
export interface WritabilityCheck {
  /** Hands the append back, and remembers when a full disk refused it. */
  watch<T>(append: Promise<T>): Promise<T>;
  /** False while the disk is full. After a refusal the log is asked anew, so that an idle service recovers too. */
  isOpen(): Promise<boolean>;
}

/** A write that leaves no event behind, as large as the largest body: what is smaller may still find a gap to fit in. */
const PROBE = {
  name: "health-probe",
  snapshot: { version: 1, position: 0, state: " ".repeat(BODY_BYTES_MAX) },
} as const;

export function createWritabilityCheck({ snapshots }: Pick<EventStore, "snapshots">): WritabilityCheck {
  let refused = false;
  return {
    watch(append) {
      append.then(
        () => {
          refused = false;
        },
        (fault: unknown) => {
          if (kindOf(fault) === "full") refused = true;
        },
      );
      return append;
    },
    async isOpen() {
      if (!refused) return true;
      try {
        await snapshots.save(PROBE.name, PROBE.snapshot);
        refused = false;
      } catch (fault) {
        if (kindOf(fault) !== "full") throw fault;
      }
      return !refused;
    },
  };
}
