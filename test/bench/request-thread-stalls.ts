import { existsSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { openSqliteStore } from "eventstore-lite";
import { atMostInAll, compare, interleave, roundsOf, type Bar, type Bench } from "eventstore-lite/bench";
import { codec, makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { onCopyOf } from "./log-copy.ts";
import { mixedLog } from "./open-mixed-log.ts";
import { postSteadily } from "./post-clicks.ts";
import { startWatched, type WatchedServer } from "./start-service-process.ts";
import { OPERATIONS } from "./stall-operations.ts";
import type { Stalls } from "./stall-watch.ts";

const EVENTS = 1_000_000;
const EVENTS_QUICK = 20_000;
const PEOPLE = 50_000;
const PEOPLE_QUICK = 1_000;

/**
 * Number of clicks posted in a second. It must be below the service's maximum rate, at which requests queue and one
 * turn of the event loop handles the whole queue.
 */
const RATE = 3_000;
/**
 * Duration of a round in seconds, in which each projection is saved at least once: that happens every 20,000 positions.
 */
const SECONDS = 8;
const SECONDS_QUICK = 2;

/** Interval of imports that keep the list of recipients changing, because only a changed list is saved. */
const IMPORT_EVERY_MS = 100;

/** Duration of a round without any operation, about as long as one of the operations takes. */
const CONTROL_MS = 2_000;

const LIMIT = atMostInAll(10, "ms");

/**
 * Measures stalls of the request thread while clicks arrive: with snapshots, without snapshots, and, with snapshots,
 * during each other long operation.
 */
export const stalls: Bench = async (options) => {
  const [events, people] = options.quick ? [EVENTS_QUICK, PEOPLE_QUICK] : [EVENTS, PEOPLE];
  const seconds = options.quick ? SECONDS_QUICK : SECONDS;
  const base = await mixedLog(options.logs, events, people);
  options.note(
    `${RATE} clicks a second on a log of ${events} events with ${people} people; snapshots: an import of one a time`,
  );
  return [
    ...(await snapshotRows(base, seconds, roundsOf(options))),
    ...(await operationRows(base, people, roundsOf(options))),
  ];
};

async function snapshotRows(base: string, seconds: number, rounds: number) {
  const { saving, without } = await onWatched(base, undefined, (one) =>
    onWatched(base, "snapshots", (other) =>
      interleave(rounds, {
        saving: () => stallsWhile(one, () => importOneByOne(one.log, seconds)),
        without: () => stallsWhile(other, () => importOneByOne(other.log, seconds)),
      }),
    ),
  );
  const row = (what: string, value: (found: Stalls) => number, bar?: Bar) =>
    compare(`stalls, ${what}; without snapshots`, "ms", saving.map(value), without.map(value), bar);
  return [
    row("processor time of the longest turn", ({ longestBusy }) => longestBusy, LIMIT),
    row("longest wait for a turn", ({ longestLate }) => longestLate),
    row("wait for a turn, p99.9", ({ p999Late }) => p999Late),
  ];
}

async function operationRows(base: string, people: number, rounds: number) {
  const names = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[];
  const { control, ...found } = await onWatched(base, undefined, (server) => {
    const operations = names.map((name) => [name, () => stallsWhile(server, () => OPERATIONS[name](server, people))]);
    const contenders = Object.fromEntries(operations) as Record<keyof typeof OPERATIONS, () => Promise<Stalls>>;
    return interleave(rounds, { control: () => stallsWhile(server, () => wait(CONTROL_MS)), ...contenders });
  });
  const row = (what: string, name: (typeof names)[number], value: (stalls: Stalls) => number, bar?: Bar) =>
    compare(`stalls, ${what}, ${name}; without`, "ms", found[name].map(value), control.map(value), bar);
  return names.flatMap((name) => [
    row("the longest turn", name, ({ longestBusy }) => longestBusy, LIMIT),
    row("the longest wait for a turn", name, ({ longestLate }) => longestLate),
  ]);
}

function onWatched<Result>(
  base: string,
  without: "snapshots" | undefined,
  work: (server: WatchedServer) => Promise<Result>,
): Promise<Result> {
  return onCopyOf(base, async (log) => {
    await using server = await startWatched(log, without);
    return await work(server);
  });
}

/** Measures the stalls while clicks arrive and `work` runs. */
async function stallsWhile(server: WatchedServer, work: () => Promise<void>): Promise<Stalls> {
  await readStalls(server);
  const done = new AbortController();
  const working = work().finally(() => done.abort());
  while (!done.signal.aborted) await postSteadily(server.url, 1, RATE);
  await working;
  return readStalls(server);
}

/** Imports recipients from another process, as a command next to the service does. */
async function importOneByOne(file: string, seconds: number): Promise<void> {
  await using store = await openSqliteStore<Event>({ file, codec });
  const endsAt = performance.now() + seconds * 1_000;
  for (let number = 0; performance.now() < endsAt; number++) {
    const data = { recipient: { username: `late_${number}` }, basis: "opt_in", fields: {}, source: "list" } as const;
    await store.append(STREAMS.outreach, [makeEvent("RecipientAdded", Bun.randomUUIDv7(), data, {})]);
    await wait(IMPORT_EVERY_MS);
  }
}

/** Reads the stalls since the last read. */
async function readStalls({ pid, stallsFile }: WatchedServer): Promise<Stalls> {
  rmSync(stallsFile, { force: true });
  process.kill(pid, "SIGUSR2");
  while (!existsSync(stallsFile)) await wait(1);
  return JSON.parse(readFileSync(stallsFile, "utf8")) as Stalls;
}
