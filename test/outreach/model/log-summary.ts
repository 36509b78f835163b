import type { RunEnd } from "../../../events/outreach.ts";
import type { RunSelection } from "../../../src/outreach/quota-and-reasons-to-end-run.ts";
import type { House } from "./simulated-world.ts";
import type { Ask } from "./record-appends-and-send-requests.ts";

/** Thrown if the log or the network breaks a rule of the outreach protocol. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function violated(rule: string, detail: object): never {
  throw new Violation(`${rule} ${JSON.stringify(detail)}`);
}

export interface Attempt {
  readonly id: string;
  readonly recipientId: string;
  readonly campaign: string;
  readonly runId: string;
  readonly accountId: string | undefined;
  readonly day: string;
  readonly timezone: string;
  readonly position: number;
  /** Time of the attempt's intent in the log, ms since the epoch. */
  readonly time: number;
  state: "open" | "in_doubt" | "sent" | "failed";
  /** True if the attempt was ever in doubt. */
  doubted: boolean;
  reason?: string;
  /** True if the attempt's place in the daily quota was given back. */
  isFreed?: boolean;
  /** Position of the event with the attempt's final outcome. */
  settledAt?: number;
  /** True if the recipient may get another message, because of this attempt's outcome or an operator's permission. */
  mayRepeat: boolean;
  asks: Ask[];
}

/** Summary of the log's events for the rule checks. It is computed without the projections, which are under test. */
export interface Books {
  readonly attempts: Map<string, Attempt>;
  /** Id of a recipient -> their newest attempt. */
  readonly latest: Map<string, Attempt>;
  /** Id of a recipient -> position of the event that first suppressed them. */
  readonly suppressed: Map<string, number>;
  /** Id of a recipient and campaign, as `keyOf` writes them -> the recipient's newest attempt in the campaign. */
  readonly ofCampaign: Map<string, Attempt>;
  /**
   * Answers of people: the id of the person, the position of the answer's event, and the time at which it was received,
   * in ms since the epoch.
   */
  readonly answers: { readonly id: string; readonly position: number; readonly at: number }[];
  /**
   * Recipient and campaign, written like a key of `ofCampaign`, for each consent that was withdrawn for that campaign
   * by its name.
   */
  readonly withdrawn: Set<string>;
  /** Name of an ended campaign -> time of its end, by the network's clock. */
  readonly endedCampaigns: Map<string, number>;
  /** Id of a recipient whose reply an operator has to read -> position of the event that holds them. */
  readonly held: Map<string, number>;
  /** Lower-case handles that suppression lists contain only as a hash. */
  readonly hashedHandles: Set<string>;
  /** Id of a recipient -> their lower-case handle, by the newest event that has both. */
  readonly handles: Map<string, string>;
  /**
   * Positions of suppressions by handle alone that this log cannot assign to a recipient, because only a lost log had
   * the event with the handle and the id.
   */
  readonly unlinked: ReadonlySet<number>;
  /** Day -> number of messages that count toward its quota. */
  readonly places: Map<string, number>;
  /** Time of the first intent after the last change of QUOTA_TIMEZONE, ms since the epoch. */
  changedAt: number;
  /** Attempts of earlier logs that used the daily quota but are not in the present log. */
  readonly lost: Attempt[];
  /** Id of an attempt -> the requests to send its message that processes made under an earlier log. */
  readonly lostAsks: Map<string, Pick<Attempt, "asks">>;
  /**
   * Ids of attempts that were recorded as not delivered and after which an operator allowed another message. The first
   * message may have arrived nevertheless.
   */
  readonly excused: Set<string>;
  readonly messageIds: Set<string>;
  readonly skips: Set<string>;
  /** Ids of the recipients that an operator imported. */
  readonly listed: Set<string>;
  /** Ids of the people who wrote to the account, which is consent. */
  readonly wrote: Set<string>;
  /**
   * Id of a recipient -> id of our message that the network showed and a skip recorded. The log has no attempt for it.
   */
  readonly found: Map<string, string>;
  /** Ids of the runs that an operator asked to stop. */
  readonly stopped: Set<string>;
  /**
   * Ids of stopped runs that made a request to the network after the stop. Each may make one, because its last check
   * may have come before the stop.
   */
  readonly askedAfterStop: Set<string>;
  readonly counts: { sent: number; skipped: number; failed: number };
  /**
   * Opt-outs received before this time, in ms since the epoch, may be unread, because the first reading of the inbox
   * left older messages unread and recorded that. 0 if it left none.
   */
  backlogBefore: number;
  /** The linked account, and the position of the event that linked it. */
  linked: { readonly id: string; readonly position: number } | undefined;
  openRun:
    | {
        readonly id: string;
        readonly dry: boolean;
        readonly at: number;
        /** The recipients that the run's caller selected. `recipients`: how many the caller named. */
        readonly selection: RunSelection & { readonly recipients?: number };
        /** Ids of the people that callers requested. `waiting` has the ids of those who have no outcome yet. */
        readonly requested: Set<string>;
        readonly waiting: Set<string>;
      }
    | undefined;
  /** Number of times that a run waited for the sending window to open. */
  waits: number;
  /** Number of recipients that callers requested (`made`), and of those that the run did not reach (`notReached`). */
  readonly requests: { made: number; notReached: number };
  /** Number of messages given up in the last check before the request, because the sending window had closed. */
  late: number;
  /** Reasons why the runs ended, in order. */
  readonly ends: RunEnd[];
}

export function createBooks(unlinked: ReadonlySet<number> = new Set()): Books {
  return {
    attempts: new Map(),
    latest: new Map(),
    ofCampaign: new Map(),
    withdrawn: new Set(),
    answers: [],
    endedCampaigns: new Map(),
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
    requests: { made: 0, notReached: 0 },
    late: 0,
    ends: [],
  };
}

/**
 * Carries facts over from the summary of a lost log to that of its replacement: requests already made, quota already
 * used, and erasures. They stay true although the present log lacks them.
 */
export function inherit(books: Books, before: Books, { replaced, forgotten }: House): void {
  const { head, ownTime } = replaced.at(-1) ?? { head: 0, ownTime: 0 };
  // The process made the request under a lost log that was longer than the present one. The request counts as made at
  // the last position of the copy that replaced the log.
  const known = (ask: Ask): Ask => (ask.took === undefined ? ask : { ...ask, took: { ...ask.took, head } });
  for (const [id, { asks }] of [...before.lostAsks, ...before.attempts])
    books.lostAsks.set(id, { asks: asks.map(known) });
  for (const [id, attempt] of books.attempts) attempt.asks = books.lostAsks.get(id)?.asks ?? [];
  for (const id of before.excused) books.excused.add(id);
  // An attempt made while a clock was ahead does not count once the clock is right, because its day lies in the future.
  const isLost = ({ id, isFreed, time }: Attempt): boolean =>
    isFreed !== true && time <= ownTime && !books.attempts.has(id);
  books.lost.push(...[...before.lost, ...before.attempts.values()].filter(isLost));
  // An erased person stays erased under any log, because their keys are destroyed.
  for (const id of forgotten) books.suppressed.set(id, head);
}

/** Number of messages that count toward the quota of the attempt's day, including those of lost logs. */
export function placesOn({ places, lost }: Books, { day, timezone }: Pick<Attempt, "day" | "timezone">): number {
  return (places.get(day) ?? 0) + lost.filter((one) => one.day === day && one.timezone === timezone).length;
}
