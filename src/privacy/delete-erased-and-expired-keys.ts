import { toDay } from "../../projections/parse-log-times.ts";
import { SERVICE_METADATA, STREAMS, findLast, type LogContext } from "../log/event-log.ts";
import { isSkewed, type LogClock } from "../log/log-time-and-clock-skew.ts";
import { errorFields } from "../platform/logger.ts";
import { systemTimer, type Timer } from "../platform/clock-ids-and-timers.ts";
import { expiredDays, firstKept, newestDay, removeDays } from "./daily-encryption-keys.ts";
import type { Keyring } from "./keyring.ts";
import type { DataOf, LogStore } from "../../events/event-types-and-codec.ts";
import type { Erase } from "../projector/restore-states.ts";
import { inChunks } from "../platform/work-in-time-slices.ts";

/**
 * Deletes all keys whose deletion the log records. They may still exist after a crash, or in a key file from a backup.
 * A day that the log names as expired keeps its keys if it cannot have expired by the present clock.
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

/** Number of erasures whose keys are checked together; most have a few keys, some have thousands. */
const ASKED_AT_ONCE = 16;

const KEPT_DAYS_MIN = 1;

/** Returns the first day that cannot have expired, even with the shortest retention. */
export function latestExpiry(now: number): string {
  return firstKept(now, KEPT_DAYS_MIN);
}

/**
 * Returns the handler for an erasure that is read while following the log: it deletes the keys, and makes snapshots
 * encrypted before unreadable.
 */
export function createEraseHandler(keyring: Keyring): Erase {
  return async ({ data }) => {
    await keyring.destroy(data.keys, data.spared);
    await keyring.replaceStateKey();
  };
}

/** Purposes of keys that expire after the number of days that the operator sets. */
export const EXPIRING = ["click", "message"] as const;

/** Deletes the keys of clicks, notifications and messages of the days before `before`. */
export async function expireDays(keyring: Keyring, before: string): Promise<void> {
  if ((await removeDays(keyring.keys, EXPIRING, before)) > 0) keyring.refresh();
}

/**
 * Number of days that answers to callers are kept: an idempotency key holds for 24 h at the least, and answers may name
 * recipients.
 */
const ANSWER_DAYS = 2;

/** Interval in ms between two checks whether a new day has begun, on which older data expires. */
const LOOK_MS = 3_600_000;

/**
 * Maximum step, in ms, by which the log's clock may jump forward before retention doubts it. A step may also only mean
 * that the service was stopped for that long.
 */
const LEAP_MS = 7 * 24 * 3_600_000;

/**
 * Time for which retention deletes nothing after the clock made a step larger than LEAP_MS: the clock may be wrong, and
 * deleted data never comes back.
 */
const DOUBTED_MS = 6 * 3_600_000;

/** A log whose personal data expires. */
export interface RetainedLog extends LogContext {
  readonly keyring: Keyring;
  readonly logClock: LogClock;
}

/**
 * Deletes the keys of expired days, now and on each new day. `days`: number of days for which the keys of clicks and
 * messages are kept; if undefined, only the keys of stored API responses and of earlier days' visitors are deleted.
 */
export async function startRetention(
  log: RetainedLog,
  days: number | undefined,
  timer: Timer = systemTimer,
): Promise<Disposable> {
  const { logClock, logger } = log;
  const isDoubtful = await createDoubt(log);
  let doneOn = "";
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    const today = toDay(logClock.now());
    // If the clocks differ, one of the two is wrong, and it is not known which, so no day expires.
    if (isDoubtful() || isSkewed(logClock.skewMs()) || today === doneOn) return;
    await expire(log, days);
    doneOn = today;
  };
  const lookLater = (): void => {
    cancel = timer(() => {
      // If the log is full or busy, the next look tries again an hour later.
      void look().catch((fault: unknown) => logger.error("expired personal data was not deleted", errorFields(fault)));
      lookLater();
    }, LOOK_MS);
  };
  await look();
  lookLater();
  return { [Symbol.dispose]: () => cancel() };
}

/**
 * Returns a function that is true while the clock is in doubt: for {@link DOUBTED_MS} after it went ahead by more than
 * {@link LEAP_MS} since the last call. The first call compares it with the newest earlier day that has a key.
 */
async function createDoubt({ keyring, logClock, logger }: RetainedLog): Promise<() => boolean> {
  const clock = logClock.now;
  const last = await newestDay(keyring.keys, toDay(clock()));
  let seen = last === undefined ? clock() : Date.parse(last);
  let until = -Infinity;
  return () => {
    const now = clock();
    if (now - seen > LEAP_MS) {
      until = now + DOUBTED_MS;
      logger.warn("the clock jumped ahead: no personal data expires until it is trusted again", {
        from: toDay(seen),
        to: toDay(now),
      });
    }
    seen = now;
    // Returns true while the clock is not trusted, for {@link DOUBTED_MS} after it jumped ahead. If the clock is set
    // back to before the time at which the jump was noticed, it is trusted again.
    return now < until && now >= until - DOUBTED_MS;
  };
}

/**
 * Records that days have expired, then deletes their keys: after a crash in between, the next instance to open the log
 * deletes them.
 */
async function expire({ eventLog, keyring, logClock, logger }: RetainedLog, days: number | undefined): Promise<void> {
  const now = logClock.now();
  await removeDays(keyring.keys, ["answer"], firstKept(now, ANSWER_DAYS));
  // Deletes the salts of earlier days, so that the visitors of different days cannot be compared.
  await removeDays(keyring.keys, ["visitor"], toDay(now));
  keyring.refresh();
  if (days === undefined) return;
  const before = firstKept(now, days);
  const record = (data: DataOf<"PersonalDataExpired">) =>
    eventLog.append(STREAMS.log, [{ type: "PersonalDataExpired", data }], SERVICE_METADATA);
  const last = await findLast(eventLog.store, "PersonalDataExpired");
  // If the last event PersonalDataExpired was recorded while a clock was ahead, it names days that have not expired
  // yet. A new event corrects it.
  if (last !== undefined && last.data.before > latestExpiry(now)) await record({ before, days: 0 });
  const { size: expired } = await expiredDays(keyring.keys, EXPIRING, before);
  if (expired === 0) return;
  const data = { before, days: expired };
  await record(data);
  await expireDays(keyring, before);
  logger.info("personal data has expired", data);
}
