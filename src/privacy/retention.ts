import { toDay } from "../../projections/time.ts";
import { SERVICE_METADATA, STREAMS, findLast, type PartDeps } from "../log/event-log.ts";
import { isSkewed, type LogClock } from "../log/log-clock.ts";
import { errorFields } from "../platform/logger.ts";
import type { Timer } from "../platform/clock.ts";
import { expiredDays, firstKept, newestDay, removeDays } from "./day-keys.ts";
import type { Keyring } from "./keyring.ts";
import type { DataOf, LogStore } from "../../events/catalog.ts";
import type { Erase } from "../projector/restore.ts";
import { inChunks } from "../platform/time-slices.ts";

/**
 * Deletes all keys that the log says are deleted: after a crash between event and deletion, or in a key file from a
 * backup, they may still exist. A day that expired by a clock that was ahead is kept until it expires by a right one.
 */
export async function applyErasures(store: LogStore, keyring: Keyring, now: number): Promise<void> {
  for await (const events of inChunks(store.read({ types: ["PersonForgotten"] }), ASKED_AT_ONCE)) {
    const erasures = events.flatMap((event) => (event.type === "PersonForgotten" ? [event.data] : []));
    const usable = new Set(await keyring.findUsable(erasures.flatMap(({ keys }) => keys)));
    for (const { keys, spared } of erasures) {
      if (!keys.some((ref) => usable.has(ref))) continue;
      if ((await keyring.destroy(keys, spared)) > 0) await keyring.replaceStateKey();
    }
  }
  const expired = await findLast(store, "PersonalDataExpired");
  if (expired === undefined) return;
  const [recorded, latest] = [expired.data.before, latestExpiry(now)];
  await expireDays(keyring, recorded < latest ? recorded : latest);
}

/** Erasures whose keys are checked together: most have a few, some thousands. */
const ASKED_AT_ONCE = 16;

const KEPT_DAYS_MIN = 1;

/** No day from this one on has expired, even with the shortest retention. */
export function latestExpiry(now: number): string {
  return firstKept(now, KEPT_DAYS_MIN);
}

/**
 * Handles an erasure that is read while following the log: deletes its keys, and makes states encrypted before it
 * unreadable.
 */
export function createEraseHandler(keyring: Keyring): Erase {
  return async ({ data }) => {
    await keyring.destroy(data.keys, data.spared);
    await keyring.replaceStateKey();
  };
}

/** Purposes whose keys expire after the days that the operator sets. */
export const EXPIRING = ["click", "message"] as const;

/** Deletes the keys of clicks, notifications and messages of the days before `before`. */
export async function expireDays(keyring: Keyring, before: string): Promise<void> {
  if ((await removeDays(keyring.keys, EXPIRING, before)) > 0) keyring.refresh();
}

/** Days that answers are kept: an idempotency key holds for 24 h at the least, and answers may name recipients. */
const ANSWER_DAYS = 2;

/** How soon a new day is noticed. */
const LOOK_MS = 3_600_000;

/**
 * A clock that has leapt this far ahead may be wrong, and deleted data never comes back, so the clock is believed only
 * after a while. After a standstill as long as that, data is deleted that much later.
 */
const LEAP_MS = 7 * 24 * 3_600_000;
const DOUBTED_MS = 6 * 3_600_000;

export interface RetentionDeps extends Pick<PartDeps, "eventLog" | "logger"> {
  readonly keyring: Keyring;
  /** Undefined if only answers expire. */
  readonly days: number | undefined;
  readonly logClock: Pick<LogClock, "now" | "skewMs">;
  readonly timer: Timer;
}

/** Deletes the keys of days that have expired: at once, and on each new day. */
export async function startRetention(deps: RetentionDeps): Promise<Disposable> {
  const { logClock, timer, logger } = deps;
  const isDoubtful = await createDoubt(deps);
  let doneOn = "";
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    const today = toDay(logClock.now());
    // One of the two clocks is wrong, and it is not known which.
    if (isDoubtful() || isSkewed(logClock.skewMs()) || today === doneOn) return;
    await expire(deps);
    doneOn = today;
  };
  const lookLater = (): void => {
    cancel = timer(() => {
      // If the log is full or busy, it takes the event an hour later.
      void look().catch((fault: unknown) => logger.error("expired personal data was not deleted", errorFields(fault)));
      lookLater();
    }, LOOK_MS);
  };
  await look();
  lookLater();
  return { [Symbol.dispose]: () => cancel() };
}

/**
 * Returns a function that is true for {@link DOUBTED_MS} after the clock has leapt since its last call, or since the
 * last day that has a key.
 */
async function createDoubt({ keyring, logClock, logger }: RetentionDeps): Promise<() => boolean> {
  const clock = logClock.now;
  const last = await newestDay(keyring.keys, toDay(clock()));
  let seen = last === undefined ? clock() : Date.parse(last);
  let until = -Infinity;
  return () => {
    const now = clock();
    if (now - seen > LEAP_MS) {
      until = now + DOUBTED_MS;
      logger.warn("the clock has leapt ahead: nothing expires until it is trusted", {
        from: toDay(seen),
        to: toDay(now),
      });
    }
    seen = now;
    // A clock that was put right is behind the time that was doubted.
    return now < until && now >= until - DOUBTED_MS;
  };
}

/** Appends the event first: after a crash, the next instance to open the log deletes the keys. */
async function expire({ eventLog, keyring, days, logClock, logger }: RetentionDeps): Promise<void> {
  const now = logClock.now();
  await removeDays(keyring.keys, ["answer"], firstKept(now, ANSWER_DAYS));
  // Without the salt, the visitors of a day cannot be compared with those of another.
  await removeDays(keyring.keys, ["visitor"], toDay(now));
  keyring.refresh();
  if (days === undefined) return;
  const before = firstKept(now, days);
  const record = (data: DataOf<"PersonalDataExpired">) =>
    eventLog.append(STREAMS.log, [{ type: "PersonalDataExpired", data }], SERVICE_METADATA);
  const last = await findLast(eventLog.store, "PersonalDataExpired");
  // A clock that was ahead has expired days that have not come yet.
  if (last !== undefined && last.data.before > latestExpiry(now)) await record({ before, days: 0 });
  const { size: expired } = await expiredDays(keyring.keys, EXPIRING, before);
  if (expired === 0) return;
  const data = { before, days: expired };
  await record(data);
  await expireDays(keyring, before);
  logger.info("personal data has expired", data);
}
