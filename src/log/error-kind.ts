import { StoreError, type StoreErrorCode } from "eventstore-lite";
import { InvalidEvent } from "../../events/event.ts";
import { ServiceError, type ErrorKind } from "../platform/service-error.ts";

/** The store is a package that knows no kinds of ours; undefined: only a mistake of ours leads there. */
const KIND_OF_STORE: Readonly<Record<StoreErrorCode, ErrorKind | undefined>> = {
  version_conflict: "busy",
  lease_lost: "busy",
  busy: "busy",
  owned: "busy",
  overloaded: "overloaded",
  full: "full",
  unavailable: "full",
  closed: "closed",
  in_doubt: "in_doubt",
  key_reused: "conflict",
  target_taken: "conflict",
  unusable: "configuration",
  signing_key_refused: "configuration",
  snapshot_ahead: "damaged",
  chain_broken: "damaged",
  diverged: "damaged",
  backup_failed: "invalid",
  segment_damaged: "invalid",
  import_refused: "invalid",
  checkpoint_refused: "invalid",
  invalid_append: undefined,
  cursor_refused: undefined,
};

/** The kind of an expected failure; undefined: the failure is unexpected. */
export function classifyError(fault: unknown): ErrorKind | undefined {
  if (fault instanceof ServiceError) return fault.kind;
  if (fault instanceof StoreError) return KIND_OF_STORE[fault.code];
  return fault instanceof InvalidEvent ? "damaged" : undefined;
}
