import type { Recorded } from "../../../events/event-types-and-codec.ts";
import { FAILURE_TRIES_MIN } from "../../../src/outreach/quota-and-reasons-to-end-run.ts";
import { violated, type Attempt, type Books } from "./log-summary.ts";
import type { House } from "./simulated-world.ts";
import { homeOf } from "./initial-state.ts";
import { isShownOpen, nextEdge } from "./sending-window-by-wall-clock.ts";

/** True if the sending window allows a message to the recipient at `ms`. */
export function isSendingTime(
  house: House,
  { listed }: Pick<Books, "listed">,
  { recipientId, timezone }: Omit<Attempt, "asks">,
  ms: number,
): boolean {
  const { window } = house.setting;
  if (window === undefined) return true;
  // Once a handle has passed to another person, the log may hold the previous holder's time zone, so any time is
  // accepted.
  if (window.zone === "recipient" && house.everHeirs.has(recipientId)) return true;
  const isOwn = window.zone === "recipient" && listed.has(recipientId);
  const zone = isOwn ? (homeOf(recipientId) ?? timezone) : timezone;
  const isOpen = isShownOpen(window.text, zone, ms);
  return isOpen || (!house.setting.isOwned && isShownOpen(window.text, zone, ms + STEP_MS));
}

/**
 * A server's clock may be set back by up to this many ms without an effect on an instance: the instance's own time
 * stands still until the clock has caught up.
 */
const STEP_MS = 1_000;

/**
 * True if the sending window lets a run start at `ms`. A window prevents a start only if it ends runs and is the same
 * for all recipients.
 */
export function mayStart({ setting: { window }, timezones }: House, ms: number): boolean {
  if (window === undefined || window.whenClosed === "pause" || window.zone === "recipient") return true;
  return [...timezones].some((zone) => [ms, ms - LEASE_MS].some((at) => isShownOpen(window.text, zone, at)));
}

/** Maximum time in ms between a run's check of the sending window and its start. In between it waits for its lease. */
const LEASE_MS = 30_000;

/** Checks that an intent fits its run's selection, limit and maximum share of failures. */
export function checkSelection(
  books: Books,
  { data, position }: Recorded<"DirectMessageAttempted">,
  house: House,
): void {
  const { limit, recipients, ...wanted } = books.openRun?.selection ?? {};
  const isNamed = books.openRun?.requested.has(data.recipient.id) === true;
  if (recipients !== undefined && !isNamed && house.everHeirs.size === 0)
    violated("an intent of a run for others", { position });
  for (const [name, value] of Object.entries(wanted)) {
    if (data[name as keyof typeof wanted] !== value)
      violated("an intent for a recipient who was left out", { name, position });
  }
  const own = [...books.attempts.values()].filter(({ runId }) => runId === data.run_id);
  if (limit !== undefined && countPlaces(own) >= limit)
    violated("a message beyond the limit of its run", { limit, position });
  const { stopAfterFailures } = house.setting;
  if (stopAfterFailures !== undefined && failedShare(own) >= stopAfterFailures) {
    violated("an intent of a run of which too many messages failed", { position });
  }
}

function countPlaces(attempts: readonly Attempt[]): number {
  return attempts.filter(({ isFreed }) => isFreed !== true).length;
}

/**
 * Returns the share of failures among the messages that a run asked the network to send; 0 if there are too few
 * messages to judge.
 */
function failedShare(attempts: readonly Attempt[]): number {
  const tried = attempts.filter(({ reason }) => reason !== "withdrawn" && reason !== "suppressed");
  return tried.length < FAILURE_TRIES_MIN ? 0 : tried.filter(({ state }) => state === "failed").length / tried.length;
}

/** Checks that a run ended for its limit, sending window or failures only if that condition was true. */
export function checkEnd(books: Books, { data, time, position }: Recorded<"RunFinished">, house: House): void {
  const { reason, until } = data;
  const own = [...books.attempts.values()].filter(({ runId }) => runId === data.run_id);
  const about = { position, reason, until };
  const { limit } = books.openRun?.selection ?? {};
  if (reason === "limit_reached" && limit !== countSent(own))
    violated("a limit ended a run too early", { ...about, limit });
  if (reason === "too_many_failures" && failedShare(own) < (house.setting.stopAfterFailures ?? Infinity)) {
    violated("failures ended a run too early", about);
  }
  if (reason === "window_closed") checkOpening(house, { time, position, until, zones: listZones(house) });
}

/**
 * Counts the messages that use up a run's limit. A message recorded as not delivered counts too, because that may be
 * recorded after the run sent its last message.
 */
function countSent(attempts: readonly Attempt[]): number {
  return attempts.filter(({ state, reason }) => state !== "failed" || reason === "not_delivered").length;
}

/** All time zones in which the sending window may be evaluated. */
function listZones({ setting: { window }, people, timezones }: House): ReadonlySet<string> {
  const homes = window?.zone === "recipient" ? people.map((_kind, index) => homeOf(String(100 + index))) : [];
  return new Set([...timezones, ...homes.filter((home) => home !== undefined)]);
}

interface Opening {
  readonly time: string;
  readonly position: number;
  readonly until: string | undefined;
  readonly zones: ReadonlySet<string>;
}

/**
 * Checks that `until`, which the log gives as the sending window's next opening, is right for one of the zones in which
 * the window was closed.
 */
export function checkOpening(house: House, { time, position, until, zones }: Opening): void {
  const { window } = house.setting;
  const about = { time, position, until };
  if (window === undefined || until === undefined) return violated("a window closed that is none", about);
  if (house.clockMoves.length > 0) return;
  const ms = Date.parse(time);
  const openings = [...zones].flatMap((zone) =>
    NOTICED_BEFORE_MS.map((before) => ms - before)
      .filter((at) => !isShownOpen(window.text, zone, at))
      .map((at) => nextEdge(window.text, zone, at)),
  );
  if (!openings.includes(Date.parse(until))) violated("a window opens at another time", { ...about, openings });
}

/**
 * Possible times in ms between the moment when a run notices that the window is closed and the run's end. In between,
 * the run settles messages in doubt.
 */
const NOTICED_BEFORE_MS = Array.from({ length: 11 }, (_, minutes) => minutes * 60_000);
