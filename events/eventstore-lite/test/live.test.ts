import { describe, expect, test } from "bun:test";
import { type Codec, type NewEvent } from "eventstore-lite";
import { identityCodec } from "../src/codec.ts";
import { newEvents, take } from "../src/contract/events.ts";
import { engines } from "./engines.ts";

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
    const { signal } = new AbortController();
    const subscribers = [1, 2, 3].map(() => take(store.subscribe({ from: 1, signal }), 10));
    await store.append("a", newEvents(10));
    await Promise.all(subscribers);
    expect(decoded).toBe(10);
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
    const { signal } = new AbortController();
    const subscribers = [1, 2].map(() => take(store.subscribe({ from: 1, signal }), 3));
    const events = ["e0", "e1", "e2"].map((id) => ({ id, type: "T", data: { given: true }, meta: {} }));
    await store.append("a", events);
    const [first, second] = await Promise.all(subscribers);
    expect(second).toEqual(first);
    expect(first?.map(({ data }) => data)).toEqual([{ given: true }, { stored: true }, { given: true }]);
    expect(decoded).toEqual(["e1"]);
    const read = await take(store.readStored(), 3);
    const places = read.map(({ position, stream, version, time, hash }) => ({ position, stream, version, time, hash }));
    expect(first).toMatchObject(places);
  });
});
