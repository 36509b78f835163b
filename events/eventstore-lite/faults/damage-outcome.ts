import { type EventStore, type NewEvent, openSqliteStore, type Recorded } from "eventstore-lite";
import { take } from "../src/testing/contract/make-events-and-collect-results.ts";

/** How a damaged log opens, verifies and reads. */
export type Fate =
  /** Damaged log that opens and verifies, and holds all of its history. */
  | "whole"
  /** Damaged log that opens and verifies, and holds its history up to some event. */
  | "prefix"
  /** Damaged log that opens and verifies, but holds the events of another log or their beginning; its id shows that. */
  | "other"
  /** Damaged log that cannot be opened or read. */
  | "refused"
  /** Damaged log that opens, and whose damage `verify` names. */
  | "found"
  /** Damaged log that opens and verifies, although some way to read it gives wrong events: silent corruption. */
  | "altered";

export interface Finding {
  readonly fate: Fate;
  /**
   * Reason for this outcome: the message of the refusal, the fault that `verify` names, or the way of reading that gave
   * wrong events.
   */
  readonly reason: string;
}

/** Expected content of a log, with which its damaged copies are compared. */
export interface History {
  readonly id: string;
  /** Events of the log as comparable texts, in order of position. */
  readonly events: readonly string[];
}

export async function historyOf(store: EventStore): Promise<History> {
  return { id: store.id, events: (await take(store.read())).map((event) => JSON.stringify(event)) };
}

/**
 * Opens, verifies and reads a damaged log in every way, and compares it with `history`, its expected content. `others`:
 * contents of the logs whose files were mixed up with its files.
 */
export async function fateOf(file: string, history: History, others: readonly History[] = []): Promise<Finding> {
  try {
    await using store = await openSqliteStore({ file });
    const verification = await store.verify();
    if (!verification.ok) return { fate: "found", reason: verification.fault?.reason ?? "" };
    const events = await take(store.read());
    const truth = [history, ...others].find(({ id }) => id === store.id);
    // The damaged log has lost even its id: SQLite found an empty file, and the store made a new log of it.
    if (!truth && events.length === 0) return { fate: "prefix", reason: "a new log" };
    const reason = truth ? await differenceFrom(truth, store, events) : "read by its id";
    if (reason !== undefined) return { fate: "altered", reason };
    if (truth !== history) return { fate: "other", reason: "" };
    return { fate: events.length === history.events.length ? "whole" : "prefix", reason: "" };
  } catch (error) {
    return { fate: "refused", reason: (error as Error).message };
  }
}

/**
 * Returns the first way of reading a damaged log that gives anything but the beginning of its history; undefined if
 * there is none.
 */
async function differenceFrom(
  { events: truth }: History,
  store: EventStore,
  events: readonly Recorded<NewEvent>[],
): Promise<string | undefined> {
  if (events.some((event, index) => JSON.stringify(event) !== truth[index])) return "read by position";
  for (const [stream, own] of Map.groupBy(events, (event) => event.stream)) {
    if (!isSame(await take(store.read({ stream })), own)) return "read by stream";
  }
  for (const [type, own] of Map.groupBy(events, (event) => event.type)) {
    if (!isSame(await take(store.read({ types: [type] })), own)) return "read by type";
  }
  return undefined;
}

function isSame(read: readonly Recorded<NewEvent>[], own: readonly Recorded<NewEvent>[]): boolean {
  return read.length === own.length && read.every((event, index) => event.hash === own[index]?.hash);
}

/** Returns, as text for a report, how many damaged logs met each {@link Fate}: "refused 12, prefix 3". */
export function tallyOf(findings: readonly Finding[]): string {
  return [...Map.groupBy(findings, ({ fate }) => fate)].map(([fate, own]) => `${fate} ${own.length}`).join(", ");
}

/** Counts the cases of silent corruption by their reasons, for the message of a failed test. */
export function alteredIn(findings: readonly Finding[]): Record<string, number> {
  const altered = findings.filter(({ fate }) => fate === "altered");
  return Object.fromEntries(
    [...Map.groupBy(altered, ({ reason }) => reason)].map(([reason, own]) => [reason, own.length]),
  );
}
