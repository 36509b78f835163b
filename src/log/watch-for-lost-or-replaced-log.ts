import { isStoreError } from "eventstore-lite";
import type { CheckpointStore } from "eventstore-lite/proof";
import { errorFields } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import { signChain } from "./sign-and-compare-checkpoints.ts";
import type { LogClock } from "./log-time-and-clock-skew.ts";
import { workUntilDisposed } from "../platform/signals.ts";
import type { StateContext } from "./event-log.ts";

/**
 * Log that an instance has open, with the functions and the clock by which the watchdog checks that the log is in reach
 * and was not replaced.
 */
export interface WatchedLog extends StateContext {
  /**
   * Calls the key store, which may be on a separate server. While the key store is out of reach, no personal data can
   * be read or recorded.
   */
  readonly askKeys: () => Promise<unknown>;
  /**
   * Opens the log's checkpoint store again. The watchdog needs this to write after a loss, because the store of a
   * failed log writes nothing any more.
   */
  readonly reopen: () => Promise<AsyncDisposable & { readonly checkpoints: CheckpointStore }>;
  /**
   * Clock of the log. If the log is on a server, each check of the log (once a second) adjusts this clock to the
   * server's.
   */
  readonly logClock: LogClock;
}

export interface LogWatch extends AsyncDisposable {
  /**
   * Promise of the fault after which the instance must end: the store failed, or the log lost events that were read
   * from it.
   */
  readonly failed: Promise<unknown>;
  /**
   * Time since which the log is out of reach, in ms since 1970: states in memory may be out of date. Undefined if the
   * log is in reach.
   */
  awaySince(): number | undefined;
}

const LOOK_EVERY_MS = 1_000;

const REPLACED = "this instance's log was replaced or restored: restart the instance to serve the new one";

/**
 * Checks each second that the log can be reached, is the one that was opened, and holds what this instance has read.
 * Waits while a file of the log is missing or hidden. Ends the instance if events were lost or a log on a server was
 * replaced.
 */
export function watchLog(watched: WatchedLog): LogWatch {
  const { eventLog, askKeys, projector, reopen, logClock, sleep, logger } = watched;
  const { store } = eventLog;
  const clock = logClock.now;
  let away: number | undefined;

  /**
   * Looks at the log once. Returns an error if it was replaced or has lost events. For lost events, it first writes a
   * checkpoint of what was read, so that a restart refuses the log until an operator accepts the loss.
   */
  const look = async (): Promise<ServiceError | undefined> => {
    await Promise.all([logClock.look(store), askKeys()]);
    const { position, hash } = projector;
    const presence = await store.confirm({ position, hash });
    if (presence === "same") return undefined;
    if (presence === "replaced") return new ServiceError("damaged", REPLACED);
    await using log = await reopen();
    const note = signChain(store, { position, hash, time: undefined }, await log.checkpoints.loadKey(), clock);
    await log.checkpoints.writeDenied(note);
    return new ServiceError(
      "damaged",
      `the log no longer holds position ${position} as this instance has read it: its server lost events, or is another one`,
    );
  };

  const { promise: lost, resolve } = Promise.withResolvers<ServiceError>();
  const watching = workUntilDisposed(async (stopping) => {
    for (;;) {
      await sleep(LOOK_EVERY_MS, stopping);
      if (stopping.aborted) return;
      try {
        const loss = await look();
        if (loss !== undefined) return resolve(loss);
        if (away !== undefined) logger.info("the log is in reach again", { away_ms: clock() - away });
        away = undefined;
      } catch (fault) {
        if (away === undefined) logger.warn("the log is out of reach", errorFields(fault));
        away ??= clock();
      }
    }
  });
  return {
    awaySince: () => away,
    failed: Promise.race([
      lost,
      store.failed.then(async (fault) =>
        isStoreError(fault, "diverged") ? ((await look().catch(() => undefined)) ?? fault) : fault,
      ),
    ]),
    [Symbol.asyncDispose]: () => watching[Symbol.asyncDispose](),
  };
}
