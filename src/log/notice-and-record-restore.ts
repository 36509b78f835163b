import { SERVICE_METADATA, STREAMS, type EventLog, findLast } from "./event-log.ts";
import { findLiving, REAL_TIME } from "./instance-heartbeats.ts";
import type { StorePlace } from "./store-backends.ts";
import type { Logger } from "../platform/logger.ts";

/**
 * Begins an epoch, as after a restore, if the log is a copy made without reachlog or was replaced by one. Only the
 * service calls this, before it opens the log. Begins none while another instance runs, which itself detects lost
 * events.
 */
export async function noticeCopy(place: StorePlace, holder: string, logger: Logger, time = REAL_TIME): Promise<void> {
  if (!(await place.isElsewhere())) return;
  {
    await using store = await place.open();
    if ((await findLiving(store, time)) !== undefined) return;
  }
  logger.warn("this log was moved: it is treated as restored");
  await place.beginEpoch("copy", holder);
}

/**
 * Appends, once in each epoch, that the log continues a copy. The guards against sending twice depend on that event.
 * Only a service calls this, as its first event, so a command that tries out a backup leaves no such event.
 */
export async function recordRestore({ store, append }: EventLog, logger: Logger): Promise<void> {
  if (store.begunAs === "new" || (await findLast(store, "LogRestored"))?.data.epoch === store.epoch) return;
  const { position, hash } = await store.head();
  const cause = store.begunAs === "backup" ? "restore" : store.begunAs;
  const data = { cause, epoch: store.epoch, found_position: position, found_hash: hash } as const;
  // The idempotency key lets only one of several instances that start at once record the restore.
  const options = { key: `restored/${store.epoch}` };
  await append(STREAMS.log, [{ type: "LogRestored", data }], SERVICE_METADATA, options);
  logger.warn("this log was restored, imported or copied: it lacks the events since then", {
    cause,
    position,
  });
}
