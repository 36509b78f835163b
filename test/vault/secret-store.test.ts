// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/platform/service-error.ts";
import type { Binding, SecretDatabase, SecretPlace } from "../../src/vault/secret-database.ts";
import { openSecretStore, type SecretStore } from "../../src/vault/secret-store.ts";
import { ENGINES } from "./engines.ts";

const KEY = new Uint8Array(32).fill(1);
const OTHER_KEY = new Uint8Array(32).fill(2);

describe.each(ENGINES)("a secret store in %s", (_engine, openPlace) => {
  test("calls during a change do not see it and are not rolled back with it", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    const standing = standStill(store);
    await standing.begun;
    const asked = [store.get("half"), store.put("beside", "kept", 0), store.names(""), store.revision()] as const;
    standing.fail();
    expect(await standing.outcome).toEqual(new Error("given up"));
    expect(await Promise.all(asked)).toEqual([undefined, true, expect.anything(), expect.any(Number)]);
    expect(await store.names("")).toEqual(["beside"]);
    expect(await store.get("beside")).toEqual({ version: 1, value: "kept" });
  });

  test("a second writer waits for a change in progress without blocking the process", async () => {
    await using world = await openPlace();
    await using one = await openSecretStore({ place: world.place, master: KEY });
    await using other = await openSecretStore({ place: world.place, master: KEY });
    const standing = standStill(one);
    await standing.begun;
    const put = other.put("half", "other's", 0);
    // The process that holds the lock must be able to go on. If waiting for the lock blocked the whole test process, it
    // could not.
    standing.goOn();
    expect([await standing.outcome, await put]).toEqual(["done", false]);
    expect(await other.get("half")).toEqual({ version: 1, value: "half" });
  });

  test("exactly one of several concurrent writes to the same version succeeds", async () => {
    await using world = await openPlace();
    await using one = await openSecretStore({ place: world.place, master: KEY });
    await using other = await openSecretStore({ place: world.place, master: KEY });
    for (let version = 0; version < 5; version++) {
      const stores = [one, other, one, other];
      const told = await Promise.all(stores.map((store, at) => store.put("tokens", `${version}-${at}`, version)));
      expect(told.filter(Boolean)).toHaveLength(1);
      expect(await one.get("tokens")).toEqual({ version: version + 1, value: `${version}-${told.indexOf(true)}` });
    }
  });

  test("concurrent changes run one after the other, each on the result of the one before", async () => {
    await using world = await openPlace();
    await using one = await openSecretStore({ place: world.place, master: KEY });
    await using other = await openSecretStore({ place: world.place, master: KEY });
    const count = (store: SecretStore) =>
      store.change(async (secrets) => {
        const kept = await secrets.get("count");
        const { version, value } = typeof kept === "object" ? kept : { version: 0, value: "0" };
        return secrets.put("count", String(Number(value) + 1), version);
      });
    expect(await Promise.all([one, other, one, other, one, other].map(count))).toEqual(Array(6).fill(true));
    expect(await one.get("count")).toEqual({ version: 6, value: "6" });
  });

  test("a failed change leaves no trace", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    await store.put("kept", "value", 0);
    const fault = await store
      .change(async (secrets) => {
        await secrets.put("kept", "another", 1);
        await secrets.bury("kept");
        await secrets.rewrap([OTHER_KEY]);
        throw new Error("given up");
      })
      .catch(String);
    expect(fault).toBe("Error: given up");
    expect(await store.get("kept")).toEqual({ version: 1, value: "value" });
  });

  test("secrets are found by name, and their names are listed by prefix in order", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    const names = ["a", "a%", "a_/1", "a/1", "a/10", "a/2", "aé", "a茶", "b", "B"];
    for (const name of names) await store.put(name, `of ${name}`, 0);
    expect(await store.names("a/")).toEqual(["a/1", "a/10", "a/2"]);
    expect(await store.names("")).toEqual(names.toSorted());
    const found = await store.getAll(["a%", "b", "c"]);
    expect(found).toEqual(
      new Map([
        ["a%", { version: 1, value: "of a%" }],
        ["b", { version: 1, value: "of b" }],
      ]),
    );
    expect(await store.getAll([])).toEqual(new Map());
  });

  test("storing many secrets at once skips existing and buried ones", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    await store.put("1500", "there", 0);
    await store.bury("7");
    await store.addAll(Array.from({ length: 2_500 }, (_, n) => [String(n), `new ${n}`] as const));
    expect(await store.names("")).toHaveLength(2_500);
    const found = await store.getAll(["0", "7", "1499", "1500", "2499"]);
    expect(Object.fromEntries(found)).toEqual({
      "0": { version: 1, value: "new 0" },
      "7": "gone",
      "1499": { version: 1, value: "new 1499" },
      "1500": { version: 1, value: "there" },
      "2499": { version: 1, value: "new 2499" },
    });
    await store.rewrap([OTHER_KEY]);
    await using other = await openSecretStore({ place: world.place, master: OTHER_KEY });
    expect(await other.getAll([...found.keys()])).toEqual(found);
  });

  test("a buried name stays gone and cannot be stored again, even if it was unused", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    await store.put("had", "value", 0);
    for (const name of ["had", "never"]) {
      await store.bury(name);
      for (const expected of [0, 1]) expect(await store.put(name, "again", expected)).toBe(false);
      expect(await store.get(name)).toBe("gone");
    }
    await using database = await world.place.open();
    const rows = await database.secrets(["had", "never"]);
    expect(rows.map(({ key, ciphertext }) => [key, ciphertext])).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  test("a store that another log has bound refuses changes from its former log", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    const binding = (log: string, epoch: string | null) => ({ log, epoch, place: "here" });
    const found: unknown[] = [];
    const bindTo =
      (log: string, epoch: string | null) =>
      (one: unknown): Binding => {
        found.push(one);
        return binding(log, epoch);
      };
    await store.bind("first", bindTo("log", "first"));
    await using other = await openSecretStore({ place: world.place, master: KEY });
    await other.bind("first", bindTo("log", "first"));
    await other.put("token", "of both", 0);
    await store.put("token", "again", 1);
    await other.bind("second", bindTo("log", "second"));
    expect([found[0], found.at(-1)]).toEqual([undefined, binding("log", "first")]);
    const refused = [() => store.put("token", "too late", 2), () => store.revision()];
    for (const ask of refused)
      expect(await ask().catch((fault: unknown) => fault)).toMatchObject({
        kind: "configuration",
        message: expect.stringContaining("taken over by the log log at here"),
      });
    expect(await store.taken).toBeInstanceOf(ServiceError);
    expect(await other.get("token")).toEqual({ version: 2, value: "again" });
    const refusal = () => {
      throw new Error("not ours");
    };
    expect(await other.bind("third", refusal).catch(String)).toBe("Error: not ours");
    await other.put("token", "still", 2);
  });

  test("notes are stored without counting as changes to the secrets", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    await using other = await openSecretStore({ place: world.place, master: KEY });
    const { changes } = await labelOf(world.place);
    for (const text of ["first", "second"]) await other.keepNote("checkpoint", text);
    expect(await store.note("checkpoint")).toBe("second");
    await store.keepNote("checkpoint", undefined);
    expect(await other.note("checkpoint")).toBeUndefined();
    expect(await labelOf(world.place)).toEqual({ changes, binding: undefined });
  });

  test("the revision changes only when another process changes a secret", async () => {
    await using world = await openPlace();
    await using store = await openSecretStore({ place: world.place, master: KEY });
    await using other = await openSecretStore({ place: world.place, master: KEY });
    const before = await store.revision();
    await store.put("tokens", "value", 0);
    await store.change(async (secrets) => {
      expect(await secrets.revision()).toBe(before);
      await secrets.put("tokens", "later", 1);
      expect(await secrets.revision()).toBe(before);
    });
    expect(await store.revision()).toBe(before);
    await other.bury("tokens");
    const after = await store.revision();
    expect(after).not.toBe(before);
    expect(await store.change((secrets) => secrets.revision())).toBe(after);
  });

  test("a secret opens although another process exchanges the data key during the read", async () => {
    await using world = await openPlace();
    await using other = await openSecretStore({ place: world.place, master: KEY });
    await other.put("tokens", "value", 0);
    let isExchanged = false;
    const place = beforeEachRead(world.place, async () => {
      if (isExchanged) return;
      isExchanged = true;
      await other.rewrap([KEY]);
    });
    await using store = await openSecretStore({ place, master: KEY });
    expect(await store.get("tokens")).toEqual({ version: 1, value: "value" });
    expect(isExchanged).toBe(true);
    expect(await store.put("tokens", "later", 1)).toBe(true);
    expect(await other.get("tokens")).toEqual({ version: 2, value: "later" });
  });

  test("stores that open the same new place at once share one data key", async () => {
    await using world = await openPlace();
    const stores = await Promise.all([1, 2, 3].map(() => openSecretStore({ place: world.place, master: KEY })));
    await stores[0]?.put("tokens", "value", 0);
    for (const store of stores) expect(await store.get("tokens")).toEqual({ version: 1, value: "value" });
    for (const store of stores) await store[Symbol.asyncDispose]();
    await using database = await world.place.open();
    expect(await database.dataKeys()).toHaveLength(1);
  });
});

/** Starts a change of the store that has put a secret and ends only when told to. */
function standStill(store: SecretStore) {
  const begun = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  const outcome = store
    .change(async (secrets) => {
      await secrets.put("half", "half", 0);
      begun.resolve();
      await end.promise;
      return "done";
    })
    .catch((fault: unknown) => fault);
  return {
    begun: begun.promise,
    outcome,
    goOn: end.resolve,
    fail: () => end.reject(new Error("given up")),
  };
}

/** Wraps a place for secrets. Its process waits for `work` each time before it gets an answer with secrets. */
function beforeEachRead(place: SecretPlace, work: () => Promise<void>): SecretPlace {
  return {
    ...place,
    async open(): Promise<SecretDatabase> {
      const database = await place.open();
      return {
        ...database,
        async secrets(names) {
          const found = await database.secrets(names);
          await work();
          return found;
        },
      };
    },
  };
}

async function labelOf(place: SecretPlace) {
  await using database = await place.open();
  return await database.label();
}
