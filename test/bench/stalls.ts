import { existsSync, readFileSync, rmSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { openSqliteStore } from "eventstore-lite";
import { atMostInAll, compare, interleave, roundsOf, type Bar, type Bench } from "eventstore-lite/bench/measure";
import { codec, makeEvent, type Event } from "../../events/catalog.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { onCopyOf } from "./copied.ts";
import { mixedLog } from "./mixed-logs.ts";
import { postSteadily } from "./post-clicks.ts";
import { startWatched, type Server } from "./server.ts";
import type { Stalls } from "./stall-watch.ts";

const EVENTS = 1_000_000;
const EVENTS_QUICK = 20_000;
const PEOPLE = 50_000;
const PEOPLE_QUICK = 1_000;

/** Clicks a second: at the most that the service can take, a turn is as long as there are requests. */
const RATE = 3_000;
/** In a round each projection has its turn to be saved, which it has every 20,000 positions. */
const SECONDS = 8;
const SECONDS_QUICK = 2;

/** So that the list of people is one that changed, which is what is saved. */
const IMPORT_EVERY_MS = 100;

const LONGEST_MS = 10;

interface Watched {
  readonly server: Server;
  readonly log: string;
  readonly file: string;
}

/** How long the request thread serves nobody while clicks come in, with snapshots being saved and without. */
export const stalls: Bench = async (options) => {
  const [events, people] = options.quick ? [EVENTS_QUICK, PEOPLE_QUICK] : [EVENTS, PEOPLE];
  const seconds = options.quick ? SECONDS_QUICK : SECONDS;
  const base = await mixedLog(options.directory, events, people);
  const { saving, without } = await onWatched(base, undefined, (one) =>
    onWatched(base, "snapshots", (other) =>
      interleave(roundsOf(options), {
        saving: () => stallsOf(one, seconds),
        without: () => stallsOf(other, seconds),
      }),
    ),
  );
  options.note(
    `${RATE} clicks a second on a log of ${events} events with ${people} people, and an import of one a time`,
  );
  const row = (what: string, value: (found: Stalls) => number, bar?: Bar) =>
    compare(`stalls, ${what}; without snapshots`, "ms", saving.map(value), without.map(value), bar);
  return [
    row("processor time of the longest turn", ({ longestBusy }) => longestBusy, atMostInAll(LONGEST_MS, "ms")),
    row("longest wait for a turn", ({ longestLate }) => longestLate),
    row("wait for a turn, p99.9", ({ p999Late }) => p999Late),
  ];
};

function onWatched<Result>(
  base: string,
  without: "snapshots" | undefined,
  work: (watched: Watched) => Promise<Result>,
): Promise<Result> {
  return onCopyOf(base, async (log) => {
    const file = `${log}-stalls.json`;
    await using server = await startWatched(log, file, without);
    return await work({ server, log, file });
  });
}

async function stallsOf(watched: Watched, seconds: number): Promise<Stalls> {
  await readStalls(watched);
  const ended = new AbortController();
  const importing = importPeople(watched.log, ended.signal);
  await postSteadily(watched.server.url, seconds, RATE);
  const found = await readStalls(watched);
  ended.abort();
  await importing;
  return found;
}

/** As a command beside the service does. */
async function importPeople(file: string, ended: AbortSignal): Promise<void> {
  await using store = await openSqliteStore<Event>({ file, codec });
  for (let number = 0; !ended.aborted; number++) {
    const data = { recipient: { username: `late_${number}` }, basis: "opt_in", fields: {}, source: "list" } as const;
    await store.append(STREAMS.outreach, [makeEvent("RecipientAdded", Bun.randomUUIDv7(), data, {})]);
    await wait(IMPORT_EVERY_MS);
  }
}

/** Those since it was last asked for. */
async function readStalls({ server, file }: Watched): Promise<Stalls> {
  rmSync(file, { force: true });
  process.kill(server.pid, "SIGUSR2");
  while (!existsSync(file)) await wait(1);
  return JSON.parse(readFileSync(file, "utf8")) as Stalls;
}
