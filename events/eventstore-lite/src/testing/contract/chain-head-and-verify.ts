import { createHash } from "node:crypto";
import { VersionConflict } from "../../errors.ts";
import { newEvent, newEvents, refusalOf, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** Number of runs of a fast-check property. Each run appends to another stream of one store. */
const RUNS = 50;
/** Time limit of the property test, in ms; a busy machine needs longer than the runner's five seconds. */
const TIMEOUT_MS = 1_200_000;

/** Contract tests that events are read as they were written, and that the hash chain proves it. */
export function chainContract({ describe, expect, fc, open, test }: Runner): void {
  describe("the chain", () => {
    test("is SHA-256 over the previous hash and the event's canonical bytes", async () => {
      await using store = await open();
      await store.append("é", [newEvent("T", { text: "line\nbreak" }), newEvent("T", [1, "ü"])]);
      let previous: Buffer = Buffer.alloc(32);
      const canonical = (await take(store.readCanonical({ from: 1, to: 2 }))).flat();
      for await (const { position, stream, version, id, type, time, data, meta, hash } of store.read()) {
        const fields = [
          position,
          stream,
          version,
          id,
          type,
          Date.parse(time),
          JSON.stringify(data),
          JSON.stringify(meta),
        ];
        previous = createHash("sha256").update(previous).update(fields.join("\n")).digest();
        expect(hash).toBe(previous.toString("hex"));
        expect(Buffer.from(canonical[position - 1] ?? []).toString()).toBe(fields.join("\n"));
      }
      expect((await take(store.readCanonical({ from: 2, to: 9 }))).flat()).toEqual(canonical.slice(1));
    });

    test(
      "verifies for any data and metadata, which are read unchanged",
      async () => {
        // Generates texts of any characters, with NUL and halves of surrogate pairs.
        const text = fc.string({ unit: "binary" });
        const anyData = fc.jsonValue({ maxDepth: 3, noUnicodeString: false, stringUnit: "binary" });
        await using store = await open();
        let runs = 0;
        const survives = fc.asyncProperty(
          fc.array(fc.tuple(anyData, text), { minLength: 1, maxLength: 5 }),
          async (values) => {
            const stream = `s${(runs += 1)}`;
            await store.append(
              stream,
              values.map(([data, meta]) => ({ ...newEvent("T", data), meta: { meta } })),
            );
            const events = await take(store.read({ stream }));
            expect(events.map((event) => event.data)).toEqual(values.map(([data]) => JSON.parse(JSON.stringify(data))));
            expect(events.map((event) => event.meta)).toEqual(values.map(([, meta]) => ({ meta })));
            expect(await store.verify()).toMatchObject({ ok: true });
          },
        );
        await fc.assert(survives, { numRuns: RUNS });
      },
      TIMEOUT_MS,
    );
  });

  describe("the head of a stream", () => {
    test("is version 0 at position 0 for an empty stream", async () => {
      await using store = await open();
      await store.append("other", newEvents(2));
      expect(await store.streamHead("a")).toEqual({ version: 0, position: 0 });
    });

    test("is its newest event's version and position, regardless of other streams", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      await store.append("other", newEvents(2));
      await store.append("a", newEvents(1));
      await store.append("other", newEvents(4));
      expect(await store.streamHead("a")).toEqual({ version: 4, position: 6 });
    });

    test("is a valid expected version until the stream's next append", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const { version } = await store.streamHead("a");
      await store.append("other", newEvents(1));
      await store.append("a", newEvents(1), { expected: version });
      expect(await refusalOf(store.append("a", newEvents(1), { expected: version }))).toBeInstanceOf(VersionConflict);
    });
  });

  describe("head", () => {
    test("is position 0 without a time for an empty log", async () => {
      await using store = await open();
      expect(await store.head()).toEqual({ position: 0, hash: "0".repeat(64), time: undefined });
    });

    test("is the last event's position, hash and time", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const last = (await take(store.read())).at(-1);
      expect(await store.head()).toEqual({ position: 3, hash: last!.hash, time: last!.time });
    });

    test("is confirmed only if the log holds it", async () => {
      await using store = await open();
      const empty = await store.head();
      expect(await store.confirm(empty)).toBe("same");
      await store.append("a", newEvents(2));
      const head = await store.head();
      expect(await Promise.all([empty, head].map(store.confirm))).toEqual(["same", "same"]);
      const others = [
        { ...head, position: 1 },
        { ...head, position: 3 },
        { ...head, hash: empty.hash },
      ];
      expect(await Promise.all(others.map(store.confirm))).toEqual(["lost", "lost", "lost"]);
    });

    test("has a hash at every position up to it", async () => {
      await using store = await open();
      await store.append("a", newEvents(3));
      const hashes = await Promise.all([0, 1, 2, 3, 4].map((position) => store.hashAt(position)));
      const events = await take(store.read());
      expect(hashes).toEqual(["0".repeat(64), ...events.map(({ hash }) => hash), undefined]);
    });
  });

  describe("verify", () => {
    test("checks the whole log and reports its progress", async () => {
      await using store = await open();
      await store.append("a", newEvents(1_200));
      const progress: number[] = [];
      const verification = await store.verify({ onProgress: (checked) => progress.push(checked) });
      expect(verification).toEqual({ ok: true, checked: 1_200, head: await store.head() });
      expect(progress.at(-1)).toBe(1_200);
    });

    test("checks a part of the log", async () => {
      await using store = await open();
      await store.append("a", newEvents(10));
      expect(await store.verify({ from: 4, to: 6 })).toMatchObject({ ok: true, checked: 3 });
      expect(await store.verify({ from: 8, to: 20 })).toMatchObject({ ok: true, checked: 3, head: { position: 10 } });
      expect(await store.verify({ from: 11 })).toMatchObject({ ok: true, checked: 0 });
    });

    test("counts each event of the part once in its progress", async () => {
      await using store = await open();
      await store.append("a", newEvents(3_000));
      const progress: number[] = [];
      await store.verify({ from: 501, to: 2_900, onProgress: (checked) => progress.push(checked) });
      expect(progress.at(-1)).toBe(2_400);
      expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b));
    });

    test("ends at the head from when it began", async () => {
      await using store = await open();
      await store.append("a", newEvents(1_000));
      let later: Promise<unknown> | undefined;
      const onProgress = () => void (later ??= store.append("a", newEvents(10)));
      const verifying = store.verify({ onProgress });
      expect(await verifying).toMatchObject({ ok: true, checked: 1_000, head: { position: 1_000 } });
    });
  });
}
