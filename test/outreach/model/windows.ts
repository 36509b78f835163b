import type { Recorded } from "../../../events/catalog.ts";
import { FAILURE_TRIES_MIN } from "../../../src/outreach/run-limits.ts";
import { violated, type Attempt, type Books } from "./books.ts";
import type { House } from "./house.ts";
import { homeOf } from "./setting.ts";
import { isShownOpen, nextEdge } from "./wall-clock.ts";

/** Whether a message to them may go out at that time. */
export function isSendingTime(
  house: House,
  { listed }: Pick<Books, "listed">,
  { recipientId, timezone }: Omit<Attempt, "asks">,
  ms: number,
): boolean {
  const { window } = house.setting;
  if (window === undefined) return true;
  // Of a handle that changed hands the log may know the zone of another.
  if (window.zone === "recipient" && house.everHeirs.has(recipientId)) return true;
  const isOwn = window.zone === "recipient" && listed.has(recipientId);
  const zone = isOwn ? (homeOf(recipientId) ?? timezone) : timezone;
  const isOpen = isShownOpen(window.text, zone, ms);
  return isOpen || (!house.setting.isOwned && isShownOpen(window.text, zone, ms + STEP_MS));
}

/** A server's clock may be set back by so much without an instance following it: for it time stands still meanwhile. */
const STEP_MS = 1_000;

/** Whether a run may start that ends outside of the window, where that is the same for all. */
export function mayStart({ setting: { window }, timezones }: House, ms: number): boolean {
  if (window === undefined || window.whenClosed === "pause" || window.zone === "recipient") return true;
  return [...timezones].some((zone) => [ms, ms - LEASE_MS].some((at) => isShownOpen(window.text, zone, at)));
}

/** So long may a run's lease be waited for since the window was looked at. */
const LEASE_MS = 30_000;

/** What the caller of the run asked for, and what ends a run, against an intent of it. */
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

/** Of those that the network was asked to send; 0 where they are too few to tell. */
function failedShare(attempts: readonly Attempt[]): number {
  const tried = attempts.filter(({ reason }) => reason !== "withdrawn" && reason !== "suppressed");
  return tried.length < FAILURE_TRIES_MIN ? 0 : tried.filter(({ state }) => state === "failed").length / tried.length;
}

/** A run that ended for its limit, its window or its failures had come so far. */
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

/** What was in doubt may be settled behind the last message of the run: then it was not delivered, and counts all the same. */
function countSent(attempts: readonly Attempt[]): number {
  return attempts.filter(({ state, reason }) => state !== "failed" || reason === "not_delivered").length;
}

/** All that the window may go by. */
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

/** `until` is when the window opens in one of the zones where it was closed. */
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

/** A run settles what is in doubt once it has noticed that the window is closed: by minutes. */
const NOTICED_BEFORE_MS = Array.from({ length: 11 }, (_, minutes) => minutes * 60_000);
