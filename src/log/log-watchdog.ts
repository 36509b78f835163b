import { LogDiverged } from "eventstore-lite";
import type { LogStore } from "../../events/catalog.ts";
import { errorFields } from "../platform/logger.ts";
import { ServiceError } from "../platform/service-error.ts";
import type { Projector } from "../projector/projector.ts";
import { signChain, type CheckpointStore } from "./checkpoint.ts";
import type { LogClock } from "./log-clock.ts";
import { workUntilDisposed } from "../platform/signals.ts";
import type { PartDeps } from "./event-log.ts";

export interface WatchLogDeps extends Pick<PartDeps, "logger" | "sleep"> {
  readonly store: LogStore;
  /** Calls the key store, which may be on a separate server: without it nothing personal is read or recorded. */
  readonly askKeys: () => Promise<unknown>;
  /** The position and the hash that this instance has folded last. */
  readonly projector: Pick<Projector, "position" | "hash">;
  /** Opens the log's checkpoint again, because a store that has stopped writes nothing any more. */
  readonly reopen: () => Promise<AsyncDisposable & { readonly checkpoints: CheckpointStore }>;
  /** Compared with the log's clock at each look. */
  readonly logClock: LogClock;
}

export interface LogWatch extends AsyncDisposable {
  /**
   * Resolves with the fault after which the instance must end: the store's, or that the log lost events that were read
   * from it.
   */
  readonly failed: Promise<unknown>;
  /**
   * Time since which the log is out of reach, in ms since 1970: data known here may be out of date. Undefined if the
   * log is in reach.
   */
  awaySince(): number | undefined;
}

const LOOK_EVERY_MS = 1_000;

const REPLACED = "this instance's log was replaced or restored: restart the instance to serve the new one";

/**
 * Checks each second that the log is in reach, is the one that was opened, and holds what this instance has read. A
 * file that was removed or covered may come back; a log that was replaced on a server, or lost events, ends the
 * instance.
 */
export function watchLog({ store, askKeys, projector, reopen, logClock, sleep, logger }: WatchLogDeps): LogWatch {
  const clock = logClock.now;
  let away: number | undefined;

  /**
   * Returns the loss, after a checkpoint of what this instance knew is written, so that no start accepts the loss by
   * itself.
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
        fault instanceof LogDiverged ? ((await look().catch(() => undefined)) ?? fault) : fault,
      ),
    ]),
    [Symbol.asyncDispose]: () => watching[Symbol.asyncDispose](),
  };
}
