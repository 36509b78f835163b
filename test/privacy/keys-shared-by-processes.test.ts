// These tests run parts of the service inside the test process.
import { afterAll, expect, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import type { Owner } from "../../events/declare-personal-members.ts";
import type { KeyStore } from "../../src/privacy/key-store.ts";
import { openKeyring, type Keyring, FRESH_MS } from "../../src/privacy/keyring.ts";
import { ENGINES } from "../vault/engines.ts";
import { openKeys } from "../harness/in-process/keyring-in-temporary-file.ts";
import { encrypted, openedBy } from "./encrypt-as-the-log-does.ts";

/**
 * The mocked `performance.now()`, in ms. It starts at the real time: a driver that noted an earlier loss of its
 * connection by the real clock would otherwise wait until that time comes.
 */
let now = performance.now();
const time = spyOn(performance, "now").mockImplementation(() => now);
afterAll(() => time.mockRestore());

const PEOPLE = ["1001", "1002", "1003"];
const clicked = (ip: string): Owner => ({ kind: "click", ip });
const personOf = (id: string): Owner => ({ kind: "person", id, username: undefined });

/** Wraps a key store in a simulated connection that reorders its answers. */
function overNetwork(keys: KeyStore, scheduler: fc.Scheduler): KeyStore {
  const delayed =
    <Args extends unknown[], Result>(what: string, work: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await scheduler.schedule(Promise.resolve(), `${what} is asked`);
      const result = await work(...args);
      await scheduler.schedule(Promise.resolve(), `${what} is answered`);
      return result;
    };
  return {
    ...keys,
    getAll: delayed("getAll", keys.getAll),
    under: delayed("under", keys.under),
    revision: delayed("revision", keys.revision),
  };
}

test("texts of a recipient forgotten elsewhere are unreadable once the cached keys are stale", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("read" as const) }),
    fc.record({ kind: fc.constant("forget" as const), who: fc.nat(PEOPLE.length * 2 - 1) }),
    fc.record({ kind: fc.constant("come to it" as const) }),
    fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1, FRESH_MS / 2, FRESH_MS) }),
    fc.record({ kind: fc.constant("answer" as const), count: fc.constantFrom(1, 2, 3, Infinity) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(step, { minLength: 5, maxLength: 30 }), async (scheduler, steps) => {
      await using world = openKeys();
      const [writer, elsewhere] = [await world.open(), await world.open()];
      const ciphertexts = [
        ...(await Promise.all(PEOPLE.map((id) => encrypted(writer, personOf(id), id)))),
        ...(await Promise.all(PEOPLE.map((id) => encrypted(writer, clicked(id), id)))),
      ];
      const { keys } = await world.open();
      const opening = openKeyring(overNetwork(keys, scheduler), () => world.now);
      await scheduler.waitFor(opening);
      const reader = await opening;
      /** For each ciphertext, the time in ms from which no process may decrypt it any more. */
      const closedFrom = ciphertexts.map(() => Infinity);
      const reads: Promise<void>[] = [];
      const read = async (): Promise<void> => {
        const isClosed = closedFrom.map((from) => from <= now);
        const texts = await openedBy(reader, ciphertexts);
        for (const [at, closed] of isClosed.entries()) if (closed) expect(texts[at]).toBeUndefined();
      };
      // By this first read, the reader caches all keys.
      await scheduler.waitFor(read());
      for (const done of steps) {
        if (done.kind === "read") reads.push(read());
        else if (done.kind === "wait") now += done.ms;
        else if (done.kind === "answer") {
          for (let left = done.count; left > 0 && scheduler.count() > 0; left--) await scheduler.waitOne();
        } else if (done.kind === "forget") {
          await elsewhere.destroy([elsewhere.refOf(ciphertexts[done.who]!)]);
          closedFrom[done.who] = Math.min(closedFrom[done.who]!, now + FRESH_MS);
        } else {
          // Makes the reader check its keys at once. A process does that when it sees an erasure in the log.
          reader.revalidate();
          for (const [at, from] of closedFrom.entries()) if (from < Infinity) closedFrom[at] = now;
        }
      }
      await scheduler.waitFor(Promise.all(reads));
    }),
    { numRuns: 150 },
  );
});

test.each(ENGINES)("on %s, addresses encrypted by two processes are forgotten separately", async (_name, engine) => {
  await using made = await engine();
  await using world = openKeys(made.place);
  const keyrings = [await world.open(), await world.open()];
  const written = (keyring: Keyring) =>
    Promise.all(Array.from({ length: 300 }, (_, n) => encrypted(keyring, clicked(`10.0.${n >> 8}.${n & 255}`), "tea")));
  const [here = [], there = []] = await Promise.all(keyrings.map(written));
  const [first, second] = keyrings as [Keyring, Keyring];
  expect(await second.destroy([second.refOf(here[7]!)])).toBe(1);
  now += FRESH_MS;
  const left = await openedBy(first, [...here, ...there]);
  expect(left.map((text, at) => (text === undefined ? at : "tea")).filter((one) => one !== "tea")).toEqual([7]);
});

test.each(ENGINES)("on %s, two processes get the same keys for the same recipients", async (_name, engine) => {
  await using made = await engine();
  await using world = openKeys(made.place);
  const [here, there] = [await world.open(), await world.open()];
  const people = PEOPLE.map((id) => ({ kind: "person", id, username: `name-${id}` }) as const);
  const [ofHere, ofThere] = await Promise.all([here.keysFor(people), there.keysFor(people.toReversed())]);
  expect(ofThere).toEqual(ofHere.toReversed());

  // One process erases a person while the other one encrypts a text about the person.
  const fresh = { kind: "person", id: "2001", username: "fresh" } as const;
  const [, ciphertext] = await Promise.all([here.destroy(here.refsOf(fresh)), encrypted(there, fresh, "tea")]);
  now += FRESH_MS;
  expect(await openedBy(there, [ciphertext, await encrypted(there, fresh, "more")])).toEqual([undefined, undefined]);
});

test("keys are read once for a whole chunk, and not again while fresh", async () => {
  await using world = openKeys();
  const writer = await world.open();
  const people = Array.from({ length: 200 }, (_, n) => personOf(String(n)));
  const ciphertexts = await Promise.all(people.map((owner) => encrypted(writer, owner, "tea")));
  const { keys } = await world.open();
  const asked: (readonly string[])[] = [];
  const getAll: KeyStore["getAll"] = (refs) => {
    asked.push(refs);
    return keys.getAll(refs);
  };
  const reader = await openKeyring({ ...keys, getAll }, () => world.now);
  asked.length = 0;
  for (let times = 0; times < 3; times++)
    expect(new Set(await openedBy(reader, ciphertexts))).toEqual(new Set(["tea"]));
  expect(asked.map((refs) => refs.length)).toEqual([people.length]);
  // All keys are cached, so the result is an array and not a promise.
  expect(reader.open(ciphertexts.map((ciphertext) => ({ ciphertext, context: "here" })))).toBeArray();
});
