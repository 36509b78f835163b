import { type EventStore, type NewEvent, openSqliteStore, type Recorded } from "eventstore-lite";
import { take } from "../src/contract/events.ts";

/**
 * What becomes of a damaged log.
 * - `whole`, `prefix`: it opens and verifies, and holds all of its history, or the history up to some event.
 * - `other`: the same of another log, which its id tells.
 * - `refused`: it cannot be opened, or not be read. `found`: it opens, and `verify` says what is wrong.
 * - `altered`: it opens and verifies, and some way to read it gives anything else. That is silent corruption.
 */
export type Fate = "whole" | "prefix" | "other" | "refused" | "found" | "altered";

export interface Finding {
  readonly fate: Fate;
  /** The message of the refusal, the reason of the verification, or how it was read differently. */
  readonly reason: string;
}

/** What a log is to hold. */
export interface History {
  /** The log's. */
  readonly id: string;
  /** Events as comparable texts, in order of position. */
  readonly events: readonly string[];
}

export async function historyOf(store: EventStore): Promise<History> {
  return { id: store.id, events: (await take(store.read())).map((event) => JSON.stringify(event)) };
}

/** Opens, verifies and reads a log in every way; `history` is its own, `others` those that got mixed up with it. */
export async function fateOf(file: string, history: History, others: readonly History[] = []): Promise<Finding> {
  try {
    await using store = await openSqliteStore({ file });
    const verification = await store.verify();
    if (!verification.ok) return { fate: "found", reason: verification.fault?.reason ?? "" };
    const events = await take(store.read());
    const truth = [history, ...others].find(({ id }) => id === store.id);
    // Not even its id was left: SQLite found an empty file, and the store made a new log of it.
    if (!truth && events.length === 0) return { fate: "prefix", reason: "a new log" };
    const reason = truth ? await differenceFrom(truth, store, events) : "read by its id";
    if (reason !== undefined) return { fate: "altered", reason };
    if (truth !== history) return { fate: "other", reason: "" };
    return { fate: events.length === history.events.length ? "whole" : "prefix", reason: "" };
  } catch (error) {
    return { fate: "refused", reason: (error as Error).message };
  }
}

/** In which way of reading the log shows anything but the beginning of its history. */
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

/** How often each fate, for a report. */
export function tallyOf(findings: readonly Finding[]): string {
  return [...Map.groupBy(findings, ({ fate }) => fate)].map(([fate, own]) => `${fate} ${own.length}`).join(", ");
}

/** How often each reason of the silent ones, for the message of a test that fails. */
export function alteredIn(findings: readonly Finding[]): Record<string, number> {
  const altered = findings.filter(({ fate }) => fate === "altered");
  return Object.fromEntries(
    [...Map.groupBy(altered, ({ reason }) => reason)].map(([reason, own]) => [reason, own.length]),
  );
}
