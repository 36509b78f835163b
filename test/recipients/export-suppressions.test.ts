// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Recipient } from "../../events/outreach.ts";
import { exportSuppressions, type SuppressionsFormat } from "../../src/recipients/export-suppressions.ts";
import { importSuppressions } from "../../src/recipients/import-suppressions.ts";
import { parseSuppressions } from "../../src/recipients/parse-imported-lists.ts";
import { nameHashKey } from "../../src/recipients/suppress.ts";
import { createSuppressionHashes } from "../../src/privacy/suppression-hashes.ts";
import type { NewEvent } from "../../src/log/event-log.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { startProjector, type Projector } from "../../src/projector/projector.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { ENGINES, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { METADATA, openMemoryLog, type MemoryLog, toStateContext } from "../harness/in-process/temporary-log.ts";

const CLOCK = (): number => Date.parse("2026-11-20T10:00:00.000Z");
const hashesOf = createSuppressionHashes(new Uint8Array(32).fill(5));
const KEY = nameHashKey(hashesOf);
const hashed = (recipient: Recipient) => hashesOf(recipient).map((hash) => `${KEY}.${hash}`);
const options = { chunkRows: 3, signal: new AbortController().signal };

type Instance = ReturnType<typeof instanceOn>;

/** Returns what a command has of an open log: the store, and the context with the states. */
function instanceOn({ store, eventLog }: MemoryLog, projector: Projector) {
  return { ...toStateContext({ eventLog, projector }), store };
}

async function textOf({ store, projector }: Instance, format: SuppressionsFormat, isHashed = false): Promise<string> {
  const { position: to } = await store.head();
  await projector.until(to);
  const list = exportSuppressions(store, { contacts: projector.state("contacts"), to, hashesOf, format, isHashed });
  return (await Array.fromAsync(list, ({ text }) => text)).join("");
}

const rowsOf = async (instance: Instance, isHashed = false): Promise<object[]> =>
  (await textOf(instance, "jsonl", isHashed))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

function take(instance: Instance, text: string, format: SuppressionsFormat) {
  const { rows, refused } = parseSuppressions(text, format, { now: CLOCK() }, KEY);
  expect(refused).toEqual([]);
  return importSuppressions({ ...instance, hashesOf }, rows, METADATA, options);
}

function suppressed(recipient: Recipient, more: object = {}): NewEvent {
  return {
    type: "RecipientSuppressed",
    data: { recipient, reason: "by_hand", hashes: [...hashesOf(recipient)], ...more },
  };
}

const ANN = { id: "101", username: "ann" };
const BEA = { id: "102", username: "bea" };
const CID = { username: "cid" };
const AT = "2026-11-20T10:00:00.000Z";

describe.each(ENGINES)("an export of suppressions from a log %s", (_where, logOf) => {
  async function openWith(stack: AsyncDisposableStack, ...events: readonly NewEvent[]) {
    const instance = await openInstance(stack, await logOf(stack), { clock: CLOCK });
    if (events.length > 0) await instance.eventLog.append("outreach", events, METADATA);
    return instance;
  }

  test("lists suppressed recipients with reason and time, and unnamed ones by hash", async () => {
    await using stack = new AsyncDisposableStack();
    const [orphan = ""] = hashesOf({ id: "109" });
    const instance = await openWith(
      stack,
      addedOf(ANN),
      suppressed({ username: "ann" }, { reason: "opt_out" }),
      suppressed({ username: "ann" }, { reason: "list", reason_text: "once more" }),
      suppressed(CID, { reason: "list", reason_text: '=asked; by, "phone"', suppressed_at: "2026-03-02" }),
      { type: "RecipientSuppressed", data: { reason: "list", hashes: [orphan], suppressed_at: "2026-03-03" } },
    );
    const reason = '=asked; by, "phone"';
    expect(await rowsOf(instance)).toEqual([
      { ...ANN, reason: "opt_out", suppressed_at: AT },
      { ...CID, reason, suppressed_at: "2026-03-02" },
      { hash: `${KEY}.${orphan}`, reason: "list", suppressed_at: "2026-03-03" },
    ]);
    expect(await rowsOf(instance, true)).toEqual([
      ...hashed(ANN).map((hash) => ({ hash, reason: "opt_out", suppressed_at: AT })),
      ...hashed(CID).map((hash) => ({ hash, reason, suppressed_at: "2026-03-02" })),
      { hash: `${KEY}.${orphan}`, reason: "list", suppressed_at: "2026-03-03" },
    ]);
    expect(await textOf(instance, "csv")).toBe(
      '\ufeff"id","username","hash","reason","suppressed_at"\r\n' +
        `"101","ann","","opt_out","${AT}"\r\n` +
        `"","cid","","'=asked; by, ""phone""","2026-03-02"\r\n` +
        `"","","${KEY}.${orphan}","list","2026-03-03"\r\n`,
    );
  });

  test("lists forgotten recipients by hash only", async () => {
    await using stack = new AsyncDisposableStack();
    const said = { reason: "list", reason_text: "Ann asked", suppressed_at: "2026-03-02" };
    const instance = { ...(await openWith(stack, addedOf(ANN), suppressed(ANN, said), addedOf(BEA))), hashesOf };
    for (const { id } of [ANN, BEA])
      await forgetPerson(instance, ({ people }) => people.get(id), { metadata: METADATA, signal: options.signal });
    const rows = [
      ...hashed(ANN).map((hash) => ({ hash, reason: "list", suppressed_at: "2026-03-02" })),
      { hash: hashed(BEA)[0], reason: "forgotten", suppressed_at: AT },
    ];
    expect(await rowsOf(instance)).toEqual(rows);
    expect(await rowsOf(instance, true)).toEqual(rows);
  });

  test("gives the same list after an import into a log with the same key", async () => {
    await using stack = new AsyncDisposableStack();
    const one = await openWith(stack, addedOf(ANN), suppressed(ANN, { reason: "opt_out" }), suppressed(CID), {
      type: "PersonForgotten",
      data: { hashes: [...hashesOf(BEA)], keys: [] },
    });
    for (const format of ["csv", "jsonl"] as const) {
      const other = await openWith(stack, addedOf(BEA));
      const list = await textOf(one, format);
      expect(await take(other, list, format)).toEqual({ taken: 4, added: 4 });
      // The order may differ: a chunk that needs no new keys may be recorded before an earlier one.
      const { bea = [], others = [] } = Object.groupBy((await textOf(other, format)).split("\n"), (line) =>
        line.includes('"bea"') ? "bea" : "others",
      );
      expect(bea).toHaveLength(1);
      expect(others.toSorted()).toEqual(list.split("\n").toSorted());
      expect(await take(other, list, format)).toEqual({ taken: 4, added: 0 });
    }
  });
});

test("a handle that passed to another recipient is exported by hash, not as that recipient", async () => {
  await using log = await openMemoryLog({ clock: CLOCK });
  const projector = log.use(await startProjector(log.store));
  await log.eventLog.append(
    "outreach",
    [addedOf(ANN), suppressed(ANN), addedOf({ id: "103", username: "ann" }), suppressed({ id: "104" })],
    METADATA,
  );
  expect(await rowsOf(instanceOn(log, projector))).toMatchObject([
    { id: "101" },
    { hash: hashed({ username: "ann" })[0] },
    { id: "104" },
  ]);
});

const recipient = fc
  .record({ id: fc.nat(4), username: fc.nat(4), by: fc.constantFrom("id", "username", "both") })
  .map(({ id, username, by }): Recipient => ({
    ...(by === "username" ? {} : { id: `10${id}` }),
    ...(by === "id" ? {} : { username: `user_${username}` }),
  }));
const happened: fc.Arbitrary<NewEvent> = fc.oneof(
  recipient.map((one) => addedOf(one)),
  recipient.map((one) => suppressed(one)),
  recipient.map((one): NewEvent => ({
    type: "RecipientSuppressed",
    data: { reason: "list", hashes: [...hashesOf(one)] },
  })),
  recipient.map((one): NewEvent => ({ type: "PersonForgotten", data: { hashes: [...hashesOf(one)], keys: [] } })),
);

test("an export and import transfers every hash and every suppressed contact", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(happened, { minLength: 1 }), fc.boolean(), async (events, isHashed) => {
      await using from = await openMemoryLog({ clock: CLOCK });
      await using to = await openMemoryLog({ clock: CLOCK });
      const one = instanceOn(from, from.use(await startProjector(from.store)));
      const other = instanceOn(to, to.use(await startProjector(to.store)));
      await one.eventLog.append("outreach", events, METADATA);
      await take(other, await textOf(one, "csv", isHashed), "csv");
      const [before, after] = [one.projector.state("contacts"), other.projector.state("contacts")];
      const missing = [...before.hashes.keys()].filter((hash) => !after.hashes.has(hash));
      for (const contact of before.people.values())
        if (contact.suppressed) missing.push(...hashesOf(contact).filter((hash) => !after.hashes.has(hash)));
      expect(missing).toEqual([]);
      if (isHashed) expect(after.people.size).toBe(0);
    }),
    { numRuns: 50 },
  );
});
