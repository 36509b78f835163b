import type { EventStore } from "eventstore-lite";
import { openPostgresStore } from "eventstore-lite/postgres";
import { StoreUnavailable } from "eventstore-lite/testing";
import { newEvents, refusalOf, take } from "../../src/testing/contract/make-events-and-collect-results.ts";
import type { Proxy, Verdict } from "../../src/testing/faulty-postgres-proxy.ts";

/** Outcomes of appends whose connection to the server was cut. */
export interface CutReport {
  readonly cuts: number;
  readonly acknowledged: number;
  readonly unavailable: number;
  /** Appends that were acknowledged but are not in the log. */
  readonly lost: readonly string[];
  /** Appends that were refused but are in the log. */
  readonly zombies: readonly string[];
  readonly doubled: readonly string[];
}

const EVENTS_EACH = 2;

/** Number of messages on the writer's connection from an append to its answer. */
const MESSAGES = 12;
/**
 * Number of messages, in both directions, on the new connection by which the writer asks the server for the outcome of
 * an append. The test cuts the connection at one of these messages.
 */
const MESSAGES_ANEW = 30;

/**
 * Appends while the writer's connection is cut at each of its messages in turn, before or after the message. After
 * every second cut, the connection on which the writer asks for the outcome is cut too, at some message.
 */
export async function cutConnections(proxy: Proxy, url: string, rounds: number): Promise<CutReport> {
  const outcomes = new Map<string, "acknowledged" | "unavailable">();
  let cuts = 0;
  {
    await using store = await openPostgresStore({ url: proxy.url });
    await store.append("warm", newEvents(1));
    for (let round = 0; round < rounds; round += 1) {
      const plan = [round % MESSAGES, ...(round % 2 === 1 ? [Math.floor(round / 2) % MESSAGES_ANEW] : [])];
      const verdict: Verdict = Math.floor(round / MESSAGES) % 2 === 0 ? "cut" : "cut-behind";
      let left = plan.shift();
      proxy.decide(({ application }) => {
        if (application !== "eventstore-lite writer" || left === undefined) return "pass";
        if (left > 0) {
          left -= 1;
          return "pass";
        }
        left = plan.shift();
        cuts += 1;
        return verdict;
      });
      const refusal = await refusalOf(store.append(`round-${round}`, newEvents(EVENTS_EACH)));
      if (refusal !== undefined && !(refusal instanceof StoreUnavailable)) throw refusal;
      outcomes.set(`round-${round}`, refusal === undefined ? "acknowledged" : "unavailable");
    }
    proxy.decide(() => "pass");
    await store.append("warm", newEvents(1));
  }
  await using store = await openPostgresStore({ url });
  return { cuts, ...(await compare(store, outcomes)) };
}

async function compare(store: EventStore, outcomes: ReadonlyMap<string, string>): Promise<Omit<CutReport, "cuts">> {
  const { ok } = await store.verify();
  if (!ok) throw new Error("the chain is broken");
  const found = Map.groupBy(await take(store.read()), ({ stream }) => stream);
  const countOf = (round: string): number => found.get(round)?.length ?? 0;
  const of = (outcome: string): string[] => [...outcomes].flatMap(([round, own]) => (own === outcome ? [round] : []));
  return {
    acknowledged: of("acknowledged").length,
    unavailable: of("unavailable").length,
    lost: of("acknowledged").filter((round) => countOf(round) < EVENTS_EACH),
    zombies: of("unavailable").filter((round) => countOf(round) > 0),
    doubled: [...outcomes.keys()].filter((round) => countOf(round) > EVENTS_EACH),
  };
}
