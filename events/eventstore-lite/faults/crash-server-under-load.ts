import { openPostgresStore } from "eventstore-lite/postgres";
import { take } from "../src/testing/contract/make-events-and-collect-results.ts";
import type { PostgresServer } from "../src/testing/postgres-server.ts";
import { type Program, startProgram } from "./start-program.ts";
import { eventsOf } from "./programs/keyed-events-and-append-loop.ts";

/** The differences between what the callers of some processes were told and what their shared log holds. */
export interface CrashReport {
  readonly acknowledged: number;
  readonly refused: number;
  readonly inDoubt: number;
  /** Appends whose process was killed before it answered. */
  readonly unanswered: number;
  readonly lost: readonly string[];
  /** Appends that were refused, but are in the log. */
  readonly zombies: readonly string[];
  readonly doubled: readonly string[];
  readonly torn: readonly string[];
  readonly gaps: number;
}

export const UNHARMED = { lost: [], zombies: [], doubled: [], torn: [], gaps: 0 };

const WRITERS = 3;
/**
 * Number of append numbers reserved for each process. The name of an append is made from its number, so two processes
 * never use the same name.
 */
const NUMBERS_EACH = 1_000_000;
/**
 * Maximum time in ms between the moment when every writer has had an acknowledgement and the next crash; the actual
 * time is random.
 */
const LIFE_MS_MAX = 150;

type Crash = "writer" | "immediate" | "kill";
/**
 * Order of the crashes: a writer is killed twice for each crash of the server, which alternates between an immediate
 * stop and a kill.
 */
const CRASHES: readonly Crash[] = ["writer", "immediate", "writer", "writer", "kill", "writer"];

/** Lets three processes append to one log, and kills in turn one of them or the server. */
export async function crashUnderLoad(server: PostgresServer, url: string, rounds: number): Promise<CrashReport> {
  const told = new Map<string, string>();
  let started = 0;
  const start = (): Program =>
    startProgram("append-despite-server-crashes", {
      arguments: [url, String(NUMBERS_EACH * started++)],
      onLine(line) {
        const [sign, key = "", outcome = ""] = line.split(" ");
        told.set(key, sign === "!" ? outcome : (sign ?? ""));
      },
    });
  const isAcknowledged = (line: string): boolean => line.startsWith("+");
  const writers = Array.from({ length: WRITERS }, start);
  for (let round = 0; round < rounds; round += 1) {
    await Promise.all(writers.map((writer) => writer.next(isAcknowledged)));
    await Bun.sleep(Math.random() * LIFE_MS_MAX);
    const crash = CRASHES[round % CRASHES.length]!;
    if (crash === "writer") {
      const index = round % WRITERS;
      await writers[index]!.kill();
      writers[index] = start();
    } else {
      await server.stop(crash);
      await Bun.sleep(Math.random() * LIFE_MS_MAX);
      await server.start();
    }
  }
  await Promise.all(writers.map((writer) => writer.next(isAcknowledged)));
  await Promise.all(writers.map((writer) => writer.kill()));
  return compare(url, told);
}

async function compare(url: string, told: ReadonlyMap<string, string>): Promise<CrashReport> {
  await using store = await openPostgresStore({ url });
  const verification = await store.verify();
  if (!verification.ok) throw new Error(`position ${verification.fault?.position}: ${verification.fault?.reason}`);
  const events = await take(store.read());
  const found = Map.groupBy(events, ({ data }) => (data as { key: string }).key);
  const copies = (key: string): number => (found.get(key)?.length ?? 0) / eventsOf(key).length;
  const toldAs = (...outcomes: string[]): string[] =>
    [...told].flatMap(([key, outcome]) => (outcomes.includes(outcome) ? [key] : []));
  const refused = toldAs("StoreUnavailable", "StoreOverloaded");
  return {
    acknowledged: toldAs("+").length,
    refused: refused.length,
    inDoubt: toldAs("AppendInDoubt").length,
    unanswered: toldAs("?").length,
    lost: toldAs("+").filter((key) => copies(key) < 1),
    zombies: refused.filter((key) => copies(key) > 0),
    doubled: [...found.keys()].filter((key) => copies(key) > 1),
    torn: [...found.keys()].filter((key) => copies(key) < 1),
    gaps: events.filter(({ position }, index) => position !== index + 1).length,
  };
}
