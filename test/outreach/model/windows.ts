import type { Recorded } from "../../../events/catalog.ts";
import { FAILURE_TRIES_MIN } from "../../../src/outreach/run-limits.ts";
import { violated, type Attempt, type Books } from "./books.ts";
import type { House } from "./house.ts";
import { homeOf } from "./setting.ts";
import { isShownOpen, nextEdge } from "./wall-clock.ts";

/** True if a message to the recipient may go out at that time. */
export function isSendingTime(
  house: House,
  { listed }: Pick<Books, "listed">,
  { recipientId, timezone }: Omit<Attempt, "asks">,
  ms: number,
): boolean {
  const { window } = house.setting;
  if (window === undefined) return true;
  // If a handle changed hands, the log may hold the previous holder's zone.
  if (window.zone === "recipient" && house.everHeirs.has(recipientId)) return true;
  const isOwn = window.zone === "recipient" && listed.has(recipientId);
  const zone = isOwn ? (homeOf(recipientId) ?? timezone) : timezone;
  const isOpen = isShownOpen(window.text, zone, ms);
  return isOpen || (!house.setting.isOwned && isShownOpen(window.text, zone, ms + STEP_MS));
}

/** An instance does not follow a server clock that is set back by up to this; its own time stands still meanwhile. */
const STEP_MS = 1_000;

/** True if a run may start at `ms`. Only a window that ends runs and is the same for all recipients prevents it. */
export function mayStart({ setting: { window }, timezones }: House, ms: number): boolean {
  if (window === undefined || window.whenClosed === "pause" || window.zone === "recipient") return true;
  return [...timezones].some((zone) => [ms, ms - LEASE_MS].some((at) => isShownOpen(window.text, zone, at)));
}

/** A run may wait this long for its lease after it checked the window. */
const LEASE_MS = 30_000;

/** Checks an intent against its run's selection, limit and failure threshold. */
export function checkSelection(
  books: Books,
  { data, position }: Recorded<"DirectMessageAttempted">,
  house: House,
): void {
  const { limit, ...wanted } = books.openRun?.selection ?? {};
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

/** Share of failures among messages that the network was asked to send; 0 if they are too few to tell. */
function failedShare(attempts: readonly Attempt[]): number {
  const tried = attempts.filter(({ reason }) => reason !== "withdrawn" && reason !== "suppressed");
  return tried.length < FAILURE_TRIES_MIN ? 0 : tried.filter(({ state }) => state === "failed").length / tried.length;
}

/** Checks that a run that ended for its limit, window or failures had reached that end. */
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
 * Counts "not delivered" too: an attempt in doubt may be settled so after the run's last message, and its place stays
 * taken.
 */
function countSent(attempts: readonly Attempt[]): number {
  return attempts.filter(({ state, reason }) => state !== "failed" || reason === "not_delivered").length;
}

/** All zones that the window may be evaluated in. */
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

/** Checks that `until` is the next opening of the window in a zone where it was closed. */
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

/** A run settles messages in doubt after it notices the closed window, up to some minutes later. */
const NOTICED_BEFORE_MS = Array.from({ length: 11 }, (_, minutes) => minutes * 60_000);
