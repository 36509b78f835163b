// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { findPerson } from "../../projections/contact-identity.ts";
import type { Contacts } from "../../projections/contact-state.ts";
import { contacts as contactsProjection } from "../../projections/contacts.ts";
import { fold } from "../../projections/projection.ts";
import { isSuppressed } from "../../src/outreach/decide.ts";
import { importSuppressions } from "../../src/recipients/import-suppressions.ts";
import { parseSuppressions, type SuppressionRow } from "../../src/recipients/parse-imported-lists.ts";
import { createDecision, nameHashKey, type Suppression } from "../../src/recipients/suppress.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import type { Recipient } from "../../events/outreach.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { given as stateAfter, testLog } from "../harness/in-process/number-and-fold-events.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { METADATA, toStateContext } from "../harness/in-process/temporary-log.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";

const hashesOf = createSuppressionHashes(new Uint8Array(32).fill(5));
const NEVER = new AbortController().signal;
const ANN = { id: "101", username: "ann" };
const [ID_HASH = "", HANDLE_HASH = ""] = hashesOf(ANN);
const LIST = { reason: "list" } as const;

const decide = (before: readonly NewEvent[], suppressions: readonly Suppression[]) =>
  createDecision(hashesOf)(stateAfter(contactsProjection, before), suppressions).map(({ data }) => data);

describe("the decision on a list of suppressions", () => {
  test("keeps the reason and the time, and hashes every known name", () => {
    const said = { reason: "list", reason_text: "asked by phone", suppressed_at: "2026-03-02" } as const;
    expect(decide([addedOf(ANN)], [{ recipient: { username: "Ann" }, ...said }])).toEqual([
      { recipient: { username: "Ann" }, ...said, hashes: [HANDLE_HASH, ID_HASH] },
    ]);
  });

  test("names no recipient for a hash alone", () => {
    expect(decide([addedOf(ANN)], [{ hash: ID_HASH, ...LIST }])).toEqual([{ ...LIST, hashes: [ID_HASH] }]);
  });

  test.each([
    ["the same handle twice", [{ recipient: { username: "bea" } }, { recipient: { username: "BEA" } }]],
    ["a name and its hash", [{ recipient: { id: "101" } }, { hash: ID_HASH }]],
    ["a hash and its name", [{ hash: ID_HASH }, { recipient: { id: "101" } }]],
    ["an id and handle, and the handle", [{ recipient: ANN }, { recipient: { username: "ann" } }]],
  ])("records %s once", (_what, rows) => {
    expect(
      decide(
        [],
        rows.map((row) => ({ ...row, ...LIST })),
      ),
    ).toHaveLength(1);
  });

  test("records a hash and a known contact's name separately", () => {
    const rows = [{ hash: ID_HASH }, { hash: HANDLE_HASH }, { recipient: ANN }];
    expect(
      decide(
        [addedOf(ANN)],
        rows.map((row) => ({ ...row, ...LIST })),
      ),
    ).toHaveLength(3);
  });

  test("records nothing for a suppressed recipient, even with another reason", () => {
    const before: NewEvent[] = [
      { type: "RecipientSuppressed", data: { recipient: ANN, ...LIST, hashes: hashesOf(ANN).slice() } },
    ];
    for (const row of [{ recipient: ANN }, { recipient: { username: "ann" } }, { hash: HANDLE_HASH }])
      expect(decide(before, [{ ...row, reason: "opt_out", suppressed_at: "2026-03-02" }])).toEqual([]);
  });

  test("records nothing for a forgotten recipient", () => {
    const forgotten: NewEvent = { type: "PersonForgotten", data: { hashes: [ID_HASH], keys: [] } };
    expect(
      decide(
        [forgotten],
        [
          { recipient: { id: "101" }, ...LIST },
          { hash: ID_HASH, ...LIST },
        ],
      ),
    ).toEqual([]);
  });
});

const idOf = (person: number): string => `10${person}`;
const person = fc.nat(3);
const anyRecipient: fc.Arbitrary<Recipient> = fc
  .tuple(person, person, fc.constantFrom("id", "username", "both"))
  .map(([one, other, by]) => ({
    ...(by === "username" ? {} : { id: idOf(one) }),
    ...(by === "id" ? {} : { username: `user_${other}` }),
  }));
const suppression: fc.Arbitrary<Suppression> = fc.oneof(
  anyRecipient.map((recipient) => ({ recipient, ...LIST })),
  anyRecipient.map((recipient) => ({ hash: hashesOf(recipient)[0] ?? "", ...LIST })),
  fc
    .tuple(anyRecipient, anyRecipient)
    .map(([recipient, other]) => ({ recipient, hash: hashesOf(other)[0] ?? "", ...LIST })),
);
const before: fc.Arbitrary<NewEvent> = fc.oneof(
  anyRecipient.map((recipient) => addedOf(recipient)),
  anyRecipient.map((recipient): NewEvent => ({ type: "RecipientSuppressed", data: { recipient, reason: "by_hand" } })),
  anyRecipient.map((recipient): NewEvent => ({
    type: "PersonForgotten",
    data: { hashes: [...hashesOf(recipient)], keys: [] },
  })),
);

const pace = fc.record({ chunk: fc.integer({ min: 1, max: 5 }), behind: fc.nat(6) });

test("after an import every recipient of the list is suppressed, and a repeat records nothing", () => {
  const rules = { ...RULES, hashes: hashesOf };
  fc.assert(
    fc.property(fc.array(before), fc.array(suppression), pace, (past, rows, { chunk, behind }) => {
      const log = testLog();
      for (const { type, data } of past) log.add(type, data);
      const stateAt = (position: number): Contacts =>
        fold(contactsProjection, contactsProjection.initial(), log.events.slice(0, position));
      const importAll = (): number => {
        const decideNext = createDecision(hashesOf);
        const before = log.events.length;
        let decided = 0;
        for (let at = 0; at < rows.length; at += chunk)
          for (const { type, data } of decideNext(
            stateAt(Math.max(before, log.events.length - behind)),
            rows.slice(at, at + chunk),
          )) {
            log.add(type, data);
            decided++;
          }
        return decided;
      };
      importAll();
      const contacts = stateAt(log.events.length);
      for (const { recipient, hash } of rows) {
        if (hash !== undefined) expect(contacts.hashes.has(hash)).toBe(true);
        if (recipient === undefined) continue;
        expect(isSuppressed({ contacts } as Parameters<typeof isSuppressed>[0], rules, recipient)).toBe(true);
        expect(findPerson(contacts, recipient)?.suppressed).not.toBe(false);
      }
      expect(importAll()).toBe(0);
    }),
    { numRuns: 5_000 },
  );
});

/** Twelve rows of a suppression list. Four of them name their recipient only by a hash. */
const LINES = Array.from({ length: 12 }, (_, at) =>
  at % 3 === 2 ? `,,${nameHashKey(hashesOf)}.${hashesOf({ id: `20${at}` })[0] ?? ""}` : `20${at},user_${at},`,
);

const rowsOf = (lines: readonly string[]): readonly SuppressionRow[] =>
  parseSuppressions(`id,username,hash\n${lines.join("\n")}`, "csv", { now: 0 }, nameHashKey(hashesOf)).rows;

describe.each(ENGINES)("an import of suppressions into a log %s", (_where, logOf) => {
  test("is completed by a repeat after an interruption between chunks, without duplicates", async () => {
    await using stack = new AsyncDisposableStack();
    const instance = { ...(await openInstance(stack, await logOf(stack))), hashesOf };
    const rows = rowsOf(LINES);
    for (let chunks = 0; chunks < rows.length / 2; chunks++) {
      const stop = new AbortController();
      const onProgress = (taken: number): void => {
        if (taken >= 2 * chunks) stop.abort();
      };
      if (chunks === 0) stop.abort();
      const options = { chunkRows: 2, signal: stop.signal, onProgress };
      expect(await importSuppressions(instance, rows, METADATA, options)).toMatchObject({ taken: 2 * chunks });
    }
    expect(await importSuppressions(instance, rows, METADATA, { chunkRows: 2, signal: NEVER })).toEqual({
      taken: 12,
      added: 2,
    });
    expect(await importSuppressions(instance, rows, METADATA, { chunkRows: 5, signal: NEVER })).toEqual({
      taken: 12,
      added: 0,
    });
    const events = await Array.fromAsync(instance.store.read({ types: ["RecipientSuppressed"] }));
    expect(events.map(({ data }) => ("hashes" in data ? data.hashes : []))).toEqual(
      rows.map(({ suppression: { id, username, hash } }) =>
        hash === undefined ? [...hashesOf({ ...(id && { id }), ...(username && { username }) })] : [hash],
      ),
    );
    expect(events.every(({ meta }) => meta.caller === METADATA.caller)).toBe(true);
    expect(instance.projector.state("contacts").people.size).toBe(8);
  });

  test("encrypts the reason of a row with a hash only, which is erased with the recipient", async () => {
    await using stack = new AsyncDisposableStack();
    const instance = { ...(await openInstance(stack, await logOf(stack))), hashesOf };
    const rows: SuppressionRow[] = [
      {
        line: 2,
        suppression: { hash: ID_HASH, ...LIST, reason_text: "Ann asked by phone", suppressed_at: "2026-03-02" },
      },
    ];
    await importSuppressions(instance, rows, METADATA, { chunkRows: 2, signal: NEVER });
    const [stored] = await Array.fromAsync(instance.store.readStored({ types: ["RecipientSuppressed"] }));
    expect(Object.keys(stored?.data as object).toSorted()).toEqual(["ciphertext", "hashes", "reason", "suppressed_at"]);
    const read = async () => (await Array.fromAsync(instance.store.read({ types: ["RecipientSuppressed"] })))[0]?.data;
    expect(await read()).toMatchObject({ reason_text: "Ann asked by phone" });
    await instance.eventLog.append("outreach", [addedOf(ANN)], METADATA);
    await forgetPerson(instance, ({ people }) => people.get(ANN.id), { metadata: METADATA, signal: NEVER });
    expect(await read()).toMatchObject({ reason: "list", suppressed_at: "2026-03-02", hashes: [ID_HASH] });
    expect(await read()).not.toHaveProperty("reason_text");
    // Importing a list that names a forgotten recipient records only the recipient's hashes.
    const naming: SuppressionRow[] = [{ line: 2, suppression: { ...ANN, ...LIST } }];
    for (const added of [1, 0])
      expect(await importSuppressions(instance, naming, METADATA, { chunkRows: 2, signal: NEVER })).toEqual({
        taken: 1,
        added,
      });
    expect(instance.projector.state("contacts").people.size).toBe(0);
  });
});

test("a run sends no message to an imported suppression after the import's end", async () => {
  const ids = ["10", "11", "12", "13"];
  let met = 0;
  await fc.assert(
    fc.asyncProperty(
      // Number of the check at which the import starts: a run of four messages checks the log 17 times.
      fc.integer({ min: 1, max: 17 }),
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.constantFrom("id", "username", "hash"), { minLength: 4, maxLength: 4 }),
      async (moment, chunkRows, kinds) => {
        await using world = await openOutreach(...ids);
        const { projector } = await world.start();
        const { run } = await world.start();
        const rows = ids.map((id, at): SuppressionRow => {
          const [hash = ""] = RULES.hashes({ id });
          const suppression = { id: { id }, username: { username: `user_${id}` }, hash: { hash } }[kinds[at] ?? "id"];
          return { line: at + 1, suppression: { ...suppression, ...LIST } };
        });
        let asked: readonly string[] | undefined;
        let calls = 0;
        const { head, streamHead } = world.store;
        const eventLog = { ...world.eventLog, store: { ...world.store } };
        const lookAround = async (): Promise<void> => {
          if (++calls !== moment) return;
          const deps = { ...toStateContext({ eventLog, projector }), hashesOf: RULES.hashes };
          await importSuppressions(deps, rows, METADATA, { chunkRows, signal: NEVER });
          asked = [...world.network.asked];
        };
        // A run checks the log before each step, and once more before it sends. The import starts at one of these
        // checks.
        Object.assign(world.store, {
          head: () => lookAround().then(head),
          streamHead: (stream: string) => lookAround().then(() => streamHead(stream)),
        });
        await run();
        if (asked === undefined) throw new Error("the run ended before the import");
        if (asked.length > 0 && asked.length < ids.length) met++;
        expect(world.network.asked).toEqual([...asked]);
      },
    ),
    { numRuns: 60 },
  );
  expect(met).toBeGreaterThan(10);
});
