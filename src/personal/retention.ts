import { OWN_CAUSE, STREAMS, type Journal } from "../journal.ts";
import { faultFields, type Logger } from "../log.ts";
import type { Clock } from "../clock.ts";
import type { Timer } from "../delivery/timer.ts";
import { dayOf, expiredDays, firstKept, removeDays } from "./day-keys.ts";
import { expireDays, EXPIRING } from "./heed.ts";
import type { Keyring } from "./keyring.ts";

/** An idempotency key holds for 24 h at the least, and answers may tell of people. */
const ANSWER_DAYS = 2;

/** How soon a new day is noticed. */
const LOOK_MS = 3_600_000;

export interface RetentionDeps {
  readonly journal: Journal;
  readonly keyring: Keyring;
  /** Undefined: only answers expire. */
  readonly days: number | undefined;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Logger;
}

/** Deletes the keys of days that have expired: at once, and on each day that comes. */
export async function startRetention(deps: RetentionDeps): Promise<Disposable> {
  const { clock, timer, log } = deps;
  let doneOn = "";
  let cancel = (): void => {};
  const look = async (): Promise<void> => {
    const today = dayOf(clock());
    if (today !== doneOn) await expire(deps);
    doneOn = today;
  };
  const lookLater = (): void => {
    cancel = timer(() => {
      // Full or busy, the log takes the event an hour later.
      void look().catch((fault: unknown) => log.error("expired personal data was not deleted", faultFields(fault)));
      lookLater();
    }, LOOK_MS);
  };
  await look();
  lookLater();
  return { [Symbol.dispose]: () => cancel() };
}

/** The event comes first: whoever opens the log later finishes what it tells of. */
async function expire({ journal, keyring, days, clock, log }: RetentionDeps): Promise<void> {
  const now = clock();
  removeDays(keyring.file, ["answer"], firstKept(now, ANSWER_DAYS));
  keyring.refresh();
  if (days === undefined) return;
  const before = firstKept(now, days);
  const expired = expiredDays(keyring.file, EXPIRING, before).size;
  if (expired === 0) return;
  const data = { before, days: expired };
  await journal.append(STREAMS.log, [{ type: "PersonalDataExpired", data }], OWN_CAUSE);
  expireDays(keyring, before);
  log.info("personal data has expired", data);
}
