import { describe, expect, test } from "bun:test";
import type { Codec, EventStore, NewEvent, Recorded } from "eventstore-lite";
import { identityCodec } from "../src/codec.ts";
import { newEvents, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { engines } from "./engines.ts";

/**
 * Maximum number of rounds. On a busy machine a subscriber may read an event from the log before it is notified of it.
 * Such a round proves nothing, so another one follows.
 */
const ROUNDS_MAX = 100;

/**
 * Appends `count` events a round, and has each subscriber read them, until `isShown` returns true for what all of them
 * read in that round. Returns false if it does so in none of {@link ROUNDS_MAX} rounds.
 */
async function untilShown(
  store: EventStore,
  { subscribers, count }: { readonly subscribers: number; readonly count: number },
  isShown: (read: readonly (readonly Recorded<NewEvent>[])[]) => boolean,
): Promise<boolean> {
  const { signal } = new AbortController();
  const all = Array.from({ length: subscribers }, () => store.subscribe({ from: 1, signal })[Symbol.asyncIterator]());
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const events = newEvents(count).map((event, index) => ({
      ...event,
      id: `r${round}e${index}`,
      data: { given: true },
    }));
    const reading = all.map((one) => Array.fromAsync({ length: count }, async () => (await one.next()).value!));
    await store.append("a", events);
    if (isShown(await Promise.all(reading))) return true;
  }
  return false;
}

describe.each(engines({ writerThread: false }))("on %s", (_name, open) => {
  test("appends of this process reach all subscribers from memory, decoded once", async () => {
    let decoded = 0;
    const counting: Codec<NewEvent> = {
      ...identityCodec(),
      decode(stored) {
        decoded += stored.length;
        return stored;
      },
    };
    await using store = await open({ codec: counting });
    const isShown = await untilShown(store, { subscribers: 3, count: 10 }, () => {
      const isOnce = decoded === 10;
      decoded = 0;
      return isOnce;
    });
    expect(isShown).toBe(true);
  });

  test("events are decoded again for later subscribers after the codec's revision changed", async () => {
    let revision = 0;
    const revised: Codec<NewEvent> = {
      ...identityCodec(),
      decode: (stored) => stored.map((event) => ({ ...event, data: { revision } })),
      revision: () => revision,
    };
    await using store = await open({ codec: revised });
    const { signal } = new AbortController();
    const [early, late] = [1, 2].map(() => store.subscribe({ from: 1, signal })[Symbol.asyncIterator]());
    await store.append("a", newEvents(1));
    await late?.next();
    await store.append("a", newEvents(2).slice(1));
    await early?.next();
    expect((await early?.next())?.value).toMatchObject({ data: { revision: 0 } });
    revision = 1;
    expect((await late?.next())?.value).toMatchObject({ position: 2, data: { revision: 1 } });
  });

  test("only events that the codec does not recall are decoded", async () => {
    const decoded: string[] = [];
    const recalling: Codec<NewEvent> = {
      ...identityCodec(),
      encode: (events) => events.map((event) => ({ ...event, data: { stored: true } })),
      decode(stored) {
        decoded.push(...stored.map(({ id }) => id));
        return stored;
      },
      recall: (event, place) => (event.id.endsWith("1") ? undefined : { ...event, ...place }),
    };
    await using store = await open({ codec: recalling });
    let first: readonly Recorded<NewEvent>[] = [];
    const isShown = await untilShown(store, { subscribers: 2, count: 3 }, ([one = [], other = []]) => {
      expect(one.map(({ hash }) => hash)).toEqual(other.map(({ hash }) => hash));
      first = one;
      const ids = decoded.splice(0).join(" ");
      const given = one.map(({ data }) => data);
      const isRecalled = Bun.deepEquals(given, [{ given: true }, { stored: true }, { given: true }]);
      return isRecalled && Bun.deepEquals(one, other) && /^r\d+e1$/.test(ids);
    });
    expect(isShown).toBe(true);
    const read = await take(store.readStored({ from: first[0]!.position }), 3);
    const places = read.map(({ position, stream, version, time, hash }) => ({ position, stream, version, time, hash }));
    expect(first).toMatchObject(places);
  });
});
