import { StoreError } from "eventstore-lite";
import { InvalidEvent } from "../../events/define-event.ts";
import { ServiceError, type ErrorKind } from "../platform/service-error.ts";

/**
 * Kind of ServiceError for each error code of the event store, a package that does not know these kinds. Undefined if
 * only a mistake in our code causes the error.
 */
const KIND_OF_STORE: Readonly<Record<StoreError["code"], ErrorKind | undefined>> = {
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

/** Returns the ServiceError kind of an expected failure; undefined if the failure is unexpected. */
export function classifyError(fault: unknown): ErrorKind | undefined {
  if (fault instanceof ServiceError) return fault.kind;
  if (fault instanceof StoreError) return KIND_OF_STORE[fault.code];
  return fault instanceof InvalidEvent ? "damaged" : undefined;
}
