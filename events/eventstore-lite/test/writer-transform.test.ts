import { describe, expect, test } from "bun:test";
import type { Codec, NewEvent } from "eventstore-lite";
import { InvalidAppend, StoreUnusable } from "eventstore-lite/testing";
import { identityCodec } from "../src/codec.ts";
import { newEvent, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { type EngineOptions, engines } from "./engines.ts";

const FINISH = new URL("./programs/writer-transform.ts", import.meta.url);

interface Parted {
  readonly times?: number;
  readonly rest?: string;
}

/** Test codec that leaves the member `rest` of an event's data to the writer thread. */
const leaving: Codec<NewEvent> = {
  ...identityCodec<NewEvent>(),
  encode: (events) =>
    events.map(({ data, ...event }) => {
      const { rest, ...kept } = data as Parted;
      return { ...event, data: kept, transformInput: rest };
    }),
};

const parted = (data: Parted): NewEvent => newEvent("Tested", data);

describe.each(engines())("on %s", (engine, openEngine) => {
  const open = (options: EngineOptions = {}) =>
    openEngine({ codec: leaving, writerTransform: FINISH, limits: { eventBytes: 1_000 }, ...options });

  test("a store is refused if its writer's thread ends before it has opened the log", async () => {
    const opening = open({ writerTransform: new URL("./programs/exiting-transform.ts", import.meta.url) });
    expect(await refusalOf(opening)).toMatchObject({ message: "the writer thread ended with code 3" });
  });

  test("the writer finishes a codec's unfinished data before it is stored and hashed", async () => {
    await using store = await open();
    await store.append("a", [parted({ rest: "x" }), parted({ times: 5 }), parted({ rest: "y", times: 2 })]);
    const stored = await take(store.readStored());
    expect(stored.map(({ data }) => data)).toEqual([{ finished: "x" }, { times: 5 }, { finished: "yy" }]);
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
  });

  test("a subscriber reads the finished event, unless the codec recalls it", async () => {
    const recalling: Codec<NewEvent> = {
      ...leaving,
      recall: (event, place) => (event.type === "Recalled" ? { ...event, ...place } : undefined),
    };
    await using store = await open({ codec: recalling });
    const following = take(store.subscribe({ from: 1, signal: new AbortController().signal }), 3);
    const data = { rest: "x" };
    await store.append("a", [parted(data), newEvent("Recalled", data), parted({ times: 3 })]);
    const read = await following;
    expect([read[0]?.data, read[2]?.data]).toEqual([{ finished: "x" }, { times: 3 }]);
    // On PostgreSQL, the subscriber may be notified of an append before the append's answer arrives. It then reads this
    // event from the log, where its codec decodes it, and does not get it from memory.
    expect(read[1]?.data).toBeOneOf(engine === "SQLite" ? [data] : [data, { finished: "x" }]);
    const [first] = await take(store.read());
    expect(read[0]).toEqual(first);
  });

  describe("a single append is refused as a whole", () => {
    test.each([
      ["if it cannot be finished", { rest: "broken" }, /could not be finished: it does not fit/],
      [
        "if the transform returns nothing",
        { rest: "nothing" },
        /could not be finished: what finishes it answers no text/,
      ],
      ["if it is too large once it is finished", { rest: "x", times: 2_000 }, /at most 1000 bytes/],
    ] as const)("%s", async (_, data, reason) => {
      await using store = await open();
      const [first, refused, last] = await Promise.all([
        store.append("a", [parted({ rest: "x" })]),
        refusalOf(store.append("a", [parted({ rest: "y" }), parted(data)])),
        store.append("a", [parted({ rest: "z" })]),
      ]);
      expect(refused).toBeInstanceOf(InvalidAppend);
      expect((refused as Error).message).toMatch(reason);
      expect([first.version, last.version]).toEqual([1, 2]);
      expect((await take(store.readStored())).map((event) => event.data)).toEqual([
        { finished: "x" },
        { finished: "z" },
      ]);
    });

    test("with its reason among other refused appends", async () => {
      await using store = await open();
      const refusals = await Promise.all(
        [{ rest: "broken" }, { rest: "x" }, { rest: "nothing" }, { rest: "x", times: 2_000 }].map((data) =>
          refusalOf(store.append("a", [parted(data)])),
        ),
      );
      expect(refusals.map((refusal) => (refusal as Error | undefined)?.message)).toEqual([
        expect.stringContaining("does not fit"),
        undefined,
        expect.stringContaining("no text"),
        expect.stringContaining("at most 1000 bytes"),
      ]);
    });

    test("if its unfinished data has a line break", async () => {
      await using store = await open();
      expect(await refusalOf(store.append("a", [parted({ rest: "x\ny" })]))).toBeInstanceOf(InvalidAppend);
      expect((await store.append("a", [parted({ rest: "x" })])).first).toBe(1);
    });

    test("if it has unfinished data and the store has no transform", async () => {
      await using store = await openEngine({ codec: leaving });
      const refused = await refusalOf(store.append("a", [parted({ rest: "x" })]));
      expect(refused).toBeInstanceOf(InvalidAppend);
      expect((refused as Error).message).toContain("without `writerTransform`");
      expect((await store.append("a", [parted({})])).first).toBe(1);
    });
  });

  test("a log does not open with a module without a transform", async () => {
    for (const name of ["./programs/no-such-module.ts", "./temporary-logs.ts"]) {
      const refusal = await refusalOf(
        open({ writerTransform: new URL(name, import.meta.url) }).then((store) => store[Symbol.asyncDispose]()),
      );
      expect(refusal).toBeInstanceOf(StoreUnusable);
    }
  });
});
