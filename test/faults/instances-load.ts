import { BEARER } from "../harness/process.ts";
import type { Logged } from "./delivery-records.ts";
import type { Instances } from "./instances.ts";
import { click } from "./click-load.ts";

/** Named clicks posted to the living instances, with their answers. Disposing it ends the load immediately. */
export interface NamedClicks extends Disposable {
  /** Event id in each answer with 202, by the click's name. */
  readonly acknowledged: ReadonlyMap<string, string>;
  /** Names of all posted clicks. */
  readonly posted: ReadonlySet<string>;
  /** Names of the clicks that were refused and not posted again. */
  readonly refused: ReadonlySet<string>;
  /** Number of answers by status. */
  readonly answers: ReadonlyMap<number, number>;
  /** Number of requests that got no answer. */
  readonly unanswered: number;
  /** Resolves when `count` more clicks are acknowledged. */
  more(count: number): Promise<void>;
  /** Stops the load. Resolves when each click in flight has an answer, and each click with a key is acknowledged. */
  stop(): Promise<void>;
}

export interface NamedClicksOptions {
  readonly callers: number;
  /** Pause of each caller between its requests, in ms. */
  readonly pauseMs: number;
  /** Numbers, in this trial, of the instances to which clicks are posted. Default: all instances. */
  readonly places?: readonly number[];
}

/**
 * Starts the load. Every second click has an idempotency key and is posted to one instance after another until it is
 * acknowledged; the others are posted once.
 */
export function startNamedClicks(
  instances: Instances,
  { callers, pauseMs, places = instances.places }: NamedClicksOptions,
): NamedClicks {
  const acknowledged = new Map<string, string>();
  const posted = new Set<string>();
  const refused = new Set<string>();
  const answers = new Map<number, number>();
  const waiting = new Set<() => void>();
  let unanswered = 0;
  const stopping = new AbortController();
  const stopped = new AbortController();

  const post = async (name: string, turn: number, key: Record<string, string>): Promise<boolean> => {
    const living = instances.living().filter(({ place }) => places.includes(place));
    const { service } = living[turn % living.length] ?? (await instances.at(places[0]!));
    const body = { ...click(0), short_code: name };
    const answer = await service.post("/api/tracking/event", body, { ...BEARER, ...key });
    // An answer that breaks off within its body acknowledges nothing.
    const { id } = (await answer.json()) as { id?: string };
    answers.set(answer.status, (answers.get(answer.status) ?? 0) + 1);
    if (answer.status !== 202 || id === undefined) {
      if (!("idempotency-key" in key)) refused.add(name);
      return false;
    }
    acknowledged.set(name, id);
    for (const look of waiting) look();
    return true;
  };
  const one = async (number: number): Promise<void> => {
    const name = `click-${number}`;
    const hasKey = number % 2 === 0;
    const key = hasKey ? { "idempotency-key": name } : {};
    posted.add(name);
    const attempt = (turn: number): Promise<boolean> =>
      post(name, turn, key).catch(() => {
        unanswered++;
        return false;
      });
    let isDone = await attempt(number);
    if (!hasKey) return;
    for (let turn = number + 1; !isDone && !stopped.signal.aborted; turn++) {
      await Bun.sleep(pauseMs);
      isDone = await attempt(turn);
    }
  };
  let next = 0;
  const caller = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await one(next++);
      await Bun.sleep(pauseMs);
    }
  };
  const calling = Promise.all(Array.from({ length: callers }, caller));

  return {
    acknowledged,
    posted,
    refused,
    answers,
    get unanswered() {
      return unanswered;
    },
    async more(count) {
      const wanted = acknowledged.size + count;
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = (): void => {
        if (acknowledged.size >= wanted) resolve();
      };
      waiting.add(look);
      await promise;
      waiting.delete(look);
    },
    async stop() {
      stopping.abort();
      await calling;
    },
    [Symbol.dispose]() {
      stopping.abort();
      stopped.abort();
    },
  };
}

/**
 * Clicks, by the names that the test gave them, for which the log contradicts the service's answer or holds the click
 * twice.
 */
export interface ClickLosses {
  /** Clicks that were acknowledged although they are missing in the log, or different there. */
  readonly lost: readonly string[];
  /** Clicks that were refused, but are in the log. */
  readonly zombies: readonly string[];
  readonly doubled: readonly string[];
}

export const UNHARMED: ClickLosses = { lost: [], zombies: [], doubled: [] };

export function lossesAmong(log: readonly Logged[], { acknowledged, posted, refused }: NamedClicks): ClickLosses {
  const found = Map.groupBy(
    log.filter(({ type }) => type === "LinkClicked"),
    ({ data }) => String(data["short_code"]),
  );
  return {
    lost: [...acknowledged].filter(([name, id]) => found.get(name)?.[0]?.id !== id).map(([name]) => name),
    zombies: [...found.keys()].filter((name) => refused.has(name) || !posted.has(name)),
    doubled: [...found].filter(([, all]) => all.length > 1).map(([name]) => name),
  };
}

/** Formats the numbers of lost, refused but recorded, and doubled clicks as a part of a line of figures. */
export function shownLosses({ lost, zombies, doubled }: ClickLosses): string {
  return `lost ${lost.length}, refused but there ${zombies.length}, doubled ${doubled.length}`;
}
