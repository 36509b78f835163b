import { describe, expect, test } from "bun:test";
import type { Codec, EventStore, NewEvent, Recorded } from "eventstore-lite";
import { identityCodec } from "../src/codec.ts";
import { newEvents, take } from "../src/contract/events.ts";
import { engines } from "./engines.ts";

/** On a busy machine a subscriber may read from the log before it hears of the append; the next round then shows it. */
const ROUNDS_MAX = 100;

/** Appends new events in each round, until the events that the subscribers read are as `isShown` wants them. */
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

describe.each(engines())("on %s", (_name, open) => {
  test("what this process appends reaches all subscribers from memory, decoded once", async () => {
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

  test("what a codec would decode otherwise by now is made again for whoever comes later", async () => {
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

  test("what a codec recalls of its own events is not decoded, and what it does not recall is", async () => {
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
