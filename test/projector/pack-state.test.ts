// These tests call the code directly.
import { expect, test } from "bun:test";
import { packState, unpackState } from "../../src/projector/past-snapshots.ts";

const people = (count: number) => new Map(Array.from({ length: count }, (_, at) => [`née_${at}`, { name: "Zoë" }]));

test("a state is stored compressed and is equal when read back", async () => {
  const state = { people: people(3_000), taken: 7 };
  const stored = await packState(state);
  expect(stored.length).toBeLessThan(20_000);
  expect(await unpackState(stored)).toEqual(state);
});

test("other work runs during encoding, and the state may change afterwards", async () => {
  const state = { people: people(3_000) };
  let turns = 0;
  let isEncoded = false;
  const takeTurn = (): void => {
    if (isEncoded) return;
    turns++;
    setImmediate(takeTurn);
  };
  takeTurn();
  const onEncoded = (): void => {
    isEncoded = true;
    state.people.clear();
  };
  const stored = await packState(state, { sliceMs: 0, onEncoded });
  expect(isEncoded).toBe(true);
  expect(turns).toBeGreaterThan(10);
  expect(await unpackState(stored)).toEqual({ people: people(3_000) });
});

test("a plain-text state of an older version can be read", async () => {
  const stored = '{"people":{"$map":[["a",{"left":{"$plain_map":[["b",1]]}}]]},"taken":7}';
  expect(await unpackState(stored)).toEqual({ people: new Map([["a", { left: new Map([["b", 1]]) }]]), taken: 7 });
});

test("a damaged text is refused", async () => {
  const stored = await packState({ people: people(3_000) });
  expect(unpackState(stored.slice(0, stored.length / 2))).rejects.toThrow();
});
