// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { createVisitorSketch } from "../../src/privacy/hash-visitor-for-counting.ts";
import { openKeys } from "../harness/in-process/keyring-in-temporary-file.ts";
import { ENGINES } from "../vault/engines.ts";

const DAY_MS = 86_400_000;

/**
 * Visitors of the tests. With this many, it practically cannot happen that all get the same numbers for two different
 * salts.
 */
const VISITORS = Array.from({ length: 8 }, (_, at) => ({ ip: `203.0.113.${at}`, userAgent: "Firefox" }));

describe.each(ENGINES)("a sketch of visitors, with the salts in %s", (_engine, openPlace) => {
  async function openSketches() {
    const world = await openPlace();
    const keys = openKeys(world.place);
    const [one, other] = [await keys.open(), await keys.open()].map((keyring) =>
      createVisitorSketch(keyring.keys, () => keys.now),
    ) as [ReturnType<typeof createVisitorSketch>, ReturnType<typeof createVisitorSketch>];
    const placesBy = async (sketch: typeof one, link = "go.example/a") =>
      Promise.all(VISITORS.map(async (visitor) => sketch(link, visitor)));
    return {
      keys,
      one,
      other,
      placesBy,
      async [Symbol.asyncDispose]() {
        await keys[Symbol.asyncDispose]();
        await world[Symbol.asyncDispose]();
      },
    };
  }

  test("gives a visitor one place all day, at every instance", async () => {
    await using world = await openSketches();
    const { keys, one, other, placesBy } = world;
    const morning = await placesBy(one);
    expect(await placesBy(other)).toEqual(morning);
    keys.now += 13 * 3_600_000;
    expect(await placesBy(one)).toEqual(morning);
  });

  test("gives a visitor another place on another day", async () => {
    await using world = await openSketches();
    const { keys, one, other, placesBy } = world;
    const first = await placesBy(one);
    keys.now += DAY_MS;
    const second = await placesBy(one);
    expect(second).not.toEqual(first);
    expect(await placesBy(other)).toEqual(second);
  });

  test("gives a day another salt after its salt was deleted", async () => {
    await using world = await openSketches();
    const { keys, one, placesBy } = world;
    const first = await placesBy(one);
    const keyring = await keys.open();
    await keyring.keys.change(async (within) => {
      for (const ref of await within.refs("v")) await within.remove(ref);
    });
    const again = createVisitorSketch(keyring.keys, () => keys.now);
    const second = await placesBy(again);
    expect(second).not.toContain(undefined);
    expect(second).not.toEqual(first);
  });

  test("gives another place for another link, address or user agent", async () => {
    await using world = await openSketches();
    const { one, placesBy } = world;
    const places = await placesBy(one);
    expect(await placesBy(one, "go.example/b")).not.toEqual(places);
    expect(new Set(places).size).toBeGreaterThan(1);
    const others = VISITORS.map(async ({ ip }) => one("go.example/a", { ip, userAgent: "Safari" }));
    expect(await Promise.all(others)).not.toEqual(places);
  });
});
