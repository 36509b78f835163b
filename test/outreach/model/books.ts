import type { RunEnd } from "../../../events/outreach.ts";
import type { RunSelection } from "../../../src/outreach/run-limits.ts";
import type { House } from "./house.ts";
import type { Ask } from "./witness.ts";

/** Something happened that must never happen. */
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
  /** It was in doubt at some time. */
  doubted: boolean;
  reason?: string;
  /** Its place was given back. */
  isFreed?: boolean;
  /** Position of the final outcome. */
  settledAt?: number;
  /** A later attempt is legal: the outcome says so, or an operator. */
  mayRepeat: boolean;
  asks: Ask[];
}

/** What the log says so far, kept by hand and not by the projections that are tested. */
export interface Books {
  readonly attempts: Map<string, Attempt>;
  /** Person -> their newest attempt. */
  readonly latest: Map<string, Attempt>;
  /** Person -> position of the first suppression. */
  readonly suppressed: Map<string, number>;
  /** Persons whose reply waits for a decision -> position of the hold. */
  readonly held: Map<string, number>;
  /** Lower-case handles that lists suppress by their hash alone. */
  readonly hashedHandles: Set<string>;
  /** Person -> lower-case handle, as the newest event with both says. */
  readonly handles: Map<string, string>;
  /** Positions of suppressions by a handle alone that the log cannot know to be theirs any more. */
  readonly unlinked: ReadonlySet<number>;
  /** Day -> places taken. */
  readonly places: Map<string, number>;
  /** Time of the first intent after the last change of the quota's time zone. */
  changedAt: number;
  /** Attempts that took a place, and that the log does not know. */
  readonly lost: Attempt[];
  /** Id of an attempt -> the requests for it that were made while another log was there. */
  readonly lostAsks: Map<string, Pick<Attempt, "asks">>;
  /** Ids of attempts that counted as not delivered and that an operator allowed to repeat: they may have arrived after all. */
  readonly excused: Set<string>;
  readonly messageIds: Set<string>;
  readonly skips: Set<string>;
  /** Who was imported. */
  readonly listed: Set<string>;
  /** Who wrote to us, which is consent. */
  readonly wrote: Set<string>;
  /** Who has a message of ours that the log does not hold, but knows of; and the id of that message. */
  readonly found: Map<string, string>;
  /** Runs that were asked to stop. */
  readonly stopped: Set<string>;
  /** Those of them that made a request afterwards: one whose last look had come before. */
  readonly askedAfterStop: Set<string>;
  readonly counts: { sent: number; skipped: number; failed: number };
  /** Messages that are older were left unread by the first reading of the inbox, which says so. */
  backlogBefore: number;
  /** The account that is linked, and the position that says so. */
  linked: { readonly id: string; readonly position: number } | undefined;
  openRun:
    | {
        readonly id: string;
        readonly dry: boolean;
        readonly at: number;
        /** What its caller asked for. */
        readonly selection: RunSelection;
      }
    | undefined;
  /** How often a run waited for the window. */
  waits: number;
  /** Messages that were given up in the last look, since the window had closed. */
  late: number;
  /** How runs ended that were started. */
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

/** What holds still although the log that held it was lost. */
export function inherit(books: Books, before: Books, { replaced, forgotten }: House): void {
  const { head, ownTime } = replaced.at(-1) ?? { head: 0, ownTime: 0 };
  // Asked by a process that had more of the log than there is now.
  const known = (ask: Ask): Ask => (ask.took === undefined ? ask : { ...ask, took: { ...ask.took, head } });
  for (const [id, { asks }] of [...before.lostAsks, ...before.attempts])
    books.lostAsks.set(id, { asks: asks.map(known) });
  for (const [id, attempt] of books.attempts) attempt.asks = books.lostAsks.get(id)?.asks ?? [];
  for (const id of before.excused) books.excused.add(id);
  // A clock that was ahead and is right now has days yet to come that it used.
  const isLost = ({ id, isFreed, time }: Attempt): boolean =>
    isFreed !== true && time <= ownTime && !books.attempts.has(id);
  books.lost.push(...[...before.lost, ...before.attempts.values()].filter(isLost));
  // Their keys are gone, whatever log it is.
  for (const id of forgotten) books.suppressed.set(id, head);
}

/** Places that were taken on the day of the attempt, by whatever log. */
export function placesOn({ places, lost }: Books, { day, timezone }: Pick<Attempt, "day" | "timezone">): number {
  return (places.get(day) ?? 0) + lost.filter((one) => one.day === day && one.timezone === timezone).length;
}
