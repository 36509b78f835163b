// These tests call the code directly.
import { expect, test } from "bun:test";
import type { ServiceError } from "../../src/platform/service-error.ts";
import type { SecretPlace } from "../../src/vault/secret-database.ts";
import { openSecretStore } from "../../src/vault/secret-store.ts";
import { ENGINES } from "./engines.ts";

const KEY = new Uint8Array(32).fill(1);

async function copy(from: SecretPlace, to: SecretPlace): Promise<void> {
  await using source = await from.open();
  await using target = await to.open();
  await target.fill(await source.contents());
}

const WAYS = ENGINES.flatMap(([from, source]) => ENGINES.map(([to, target]) => ({ from, source, to, target })));

test.each(WAYS)(
  "a copy from $from to $to has the same secrets, buried names and claims",
  async ({ source, target }) => {
    await using from = await source();
    await using to = await target();
    {
      await using store = await openSecretStore({ ...from, master: KEY });
      // Adds more secrets than one write inserts.
      await store.addAll(Array.from({ length: 1_500 }, (_, at) => [`name ${at}`, `value ${at}`] as const));
      await store.put("name 7", "later", 1);
      await store.bury("name 8");
      await store.claim("state", 10, 0);
    }
    await copy(from.place, to.place);
    // Copies a second time, as an operator does after an interruption.
    await copy(from.place, to.place);
    await using store = await openSecretStore({ ...to, master: KEY });
    expect(await store.names("")).toHaveLength(1_500);
    expect(Object.fromEntries(await store.getAll(["name 7", "name 8", "name 1499"]))).toEqual({
      "name 7": { version: 2, value: "later" },
      "name 8": "gone",
      "name 1499": { version: 1, value: "value 1499" },
    });
    expect([await store.isClaimed("state", 5), await store.gone("")]).toEqual([true, ["name 8"]]);
  },
);

test.each(ENGINES)("a copy in %s does not replace the secrets of another store", async (_name, engine) => {
  await using from = await engine();
  await using to = await engine();
  for (const { place } of [from, to]) {
    await using store = await openSecretStore({ place, master: KEY });
    await store.put("own", place.name, 0);
  }
  const refusal = await copy(from.place, to.place).catch((fault: unknown) => fault);
  expect(refusal).toMatchObject({ kind: "conflict" } satisfies Partial<ServiceError>);
  await using store = await openSecretStore({ ...to, master: KEY });
  expect(await store.get("own")).toEqual({ version: 1, value: to.place.name });
});

test.each(ENGINES)(
  "a copy in %s replaces only a store with fewer changes and keeps buried names",
  async (_name, engine) => {
    await using from = await engine();
    await using to = await engine();
    {
      await using store = await openSecretStore({ ...from, master: KEY });
      await store.addAll(["a", "b", "c"].map((name) => [name, "first"] as const));
    }
    await copy(from.place, to.place);
    {
      await using store = await openSecretStore({ ...to, master: KEY });
      await store.put("a", "newer", 1);
      await store.bury("b");
      await store.remove("c");
    }
    // The older copy changes nothing. In particular, it does not bring back secrets that were given up since.
    await copy(from.place, to.place);
    const stateOf = async (place: SecretPlace) => {
      await using store = await openSecretStore({ place, master: KEY });
      return Object.fromEntries(await store.getAll(["a", "b", "c", "d"]));
    };
    expect(await stateOf(to.place)).toEqual({ a: { version: 2, value: "newer" }, b: "gone" });
    {
      await using store = await openSecretStore({ ...from, master: KEY });
      for (let version = 1; version < 9; version++) await store.put("d", `of change ${version}`, version - 1);
      await store.put("a", "newest", 1);
    }
    await copy(from.place, to.place);
    expect(await stateOf(to.place)).toEqual({
      a: { version: 2, value: "newest" },
      b: "gone",
      c: { version: 1, value: "first" },
      d: { version: 8, value: "of change 8" },
    });
  },
);
