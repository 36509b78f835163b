import type { RunEnd } from "../../../events/outreach.ts";
import type { RunSelection } from "../../../src/outreach/run-limits.ts";
import type { House } from "./house.ts";
import type { Ask } from "./witness.ts";

/** A rule of the protocol was broken. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violated(rule: string, detail: object): never {
  throw new Violation(`${rule} ${JSON.stringify(detail)}`);
}

export interface Attempt {
  readonly id: string;
  readonly recipientId: string;
  readonly runId: string;
  readonly accountId: string | undefined;
  readonly day: string;
  readonly timezone: string;
  readonly position: number;
  /** When the intent was recorded, ms since the epoch. */
  readonly time: number;
  state: "open" | "in_doubt" | "sent" | "failed";
  /** True if it was ever in doubt. */
  doubted: boolean;
  reason?: string;
  /** True if its place in the day's quota was given back. */
  isFreed?: boolean;
  /** Position of the final outcome. */
  settledAt?: number;
  /** True if the outcome or an operator allows another attempt. */
  mayRepeat: boolean;
  asks: Ask[];
}

/** The log's content so far, kept independently of the projections under test. */
export interface Books {
  readonly attempts: Map<string, Attempt>;
  /** Person -> their newest attempt. */
  readonly latest: Map<string, Attempt>;
  /** Person -> position of the first suppression. */
  readonly suppressed: Map<string, number>;
  /** Persons whose reply waits for a decision -> position of the hold. */
  readonly held: Map<string, number>;
  /** Lower-case handles that suppression lists contain only as a hash. */
  readonly hashedHandles: Set<string>;
  /** Person -> lower-case handle, as the newest event with both says. */
  readonly handles: Map<string, string>;
  /** Positions of suppressions by a handle alone that the log can no longer link to the person. */
  readonly unlinked: ReadonlySet<number>;
  /** Day -> places taken in its quota. */
  readonly places: Map<string, number>;
  /** Time of the first intent after the last change of the quota's time zone. */
  changedAt: number;
  /** Attempts that took a place but that the current log does not contain. */
  readonly lost: Attempt[];
  /** Id of an attempt -> its requests that were made under an earlier log. */
  readonly lostAsks: Map<string, Pick<Attempt, "asks">>;
  /**
   * Ids of attempts that counted as not delivered and that an operator allowed to repeat: they may have arrived
   * nevertheless.
   */
  readonly excused: Set<string>;
  readonly messageIds: Set<string>;
  readonly skips: Set<string>;
  /** Imported people. */
  readonly listed: Set<string>;
  /** People who wrote to us, which is consent. */
  readonly wrote: Set<string>;
  /** Person -> id of a message of ours that the log does not contain but knows of. */
  readonly found: Map<string, string>;
  /** Runs that were asked to stop. */
  readonly stopped: Set<string>;
  /** Stopped runs that made one more request, which is legal once: their last check came before the stop. */
  readonly askedAfterStop: Set<string>;
  readonly counts: { sent: number; skipped: number; failed: number };
  /** The first reading of the inbox leaves messages older than this unread, and the log says so. */
  backlogBefore: number;
  /** The linked account, and the position of the event that linked it. */
  linked: { readonly id: string; readonly position: number } | undefined;
  openRun:
    | {
        readonly id: string;
        readonly dry: boolean;
        readonly at: number;
        /** The recipients that the run's caller selected. */
        readonly selection: RunSelection;
      }
    | undefined;
  /** Number of times that a run waited for the window. */
  waits: number;
  /** Messages given up in the last check before the request, because the window had closed. */
  late: number;
  /** End reasons of the runs. */
  readonly ends: RunEnd[];
}

export function createBooks(unlinked: ReadonlySet<number> = new Set()): Books {
  return {
    attempts: new Map(),
    latest: new Map(),
    suppressed: new Map(),
    held: new Map(),
    hashedHandles: new Set(),
    handles: new Map(),
    unlinked,
    places: new Map(),
    changedAt: -Infinity,
    lost: [],
    lostAsks: new Map(),
    excused: new Set(),
    messageIds: new Set(),
    skips: new Set(),
    listed: new Set(),
    wrote: new Set(),
    found: new Map(),
    stopped: new Set(),
    askedAfterStop: new Set(),
    counts: { sent: 0, skipped: 0, failed: 0 },
    backlogBefore: -Infinity,
    linked: undefined,
    openRun: undefined,
    waits: 0,
    late: 0,
    ends: [],
  };
}

/** Carries over the facts that outlive the loss of the log that recorded them. */
export function inherit(books: Books, before: Books, { replaced, forgotten }: House): void {
  const { head, ownTime } = replaced.at(-1) ?? { head: 0, ownTime: 0 };
  // The asking process knew of a log longer than the present one.
  const known = (ask: Ask): Ask => (ask.took === undefined ? ask : { ...ask, took: { ...ask.took, head } });
  for (const [id, { asks }] of [...before.lostAsks, ...before.attempts])
    books.lostAsks.set(id, { asks: asks.map(known) });
  for (const [id, attempt] of books.attempts) attempt.asks = books.lostAsks.get(id)?.asks ?? [];
  for (const id of before.excused) books.excused.add(id);
  // Excludes attempts of a clock that was ahead and is right now: their days are yet to come.
  const isLost = ({ id, isFreed, time }: Attempt): boolean =>
    isFreed !== true && time <= ownTime && !books.attempts.has(id);
  books.lost.push(...[...before.lost, ...before.attempts.values()].filter(isLost));
  // The keys of erased people stay destroyed under any log.
  for (const id of forgotten) books.suppressed.set(id, head);
}

/** Places taken on the attempt's day under any log. */
export function placesOn({ places, lost }: Books, { day, timezone }: Pick<Attempt, "day" | "timezone">): number {
  return (places.get(day) ?? 0) + lost.filter((one) => one.day === day && one.timezone === timezone).length;
}
