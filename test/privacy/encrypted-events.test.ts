// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Codec, NewEvent, Recorded as Stored } from "eventstore-lite";
import {
  codec as withoutKeys,
  makeEvent,
  ENCRYPTED_TYPES,
  encryptingCodec,
  type Event,
} from "../../events/event-types-and-codec.ts";
import { ciphertextOf } from "../../events/divide-and-encrypt-personal-data.ts";
import { InvalidEvent } from "../../events/define-event.ts";
import { classifyError } from "../../src/log/classify-store-error.ts";
import { anyEvent } from "../events/generate-events-from-schema.ts";
import { openKeys } from "../harness/in-process/keyring-in-temporary-file.ts";
import { finished } from "./encrypt-as-the-log-does.ts";
import { countCases } from "../harness/case-count.ts";

const RUNS = { numRuns: countCases(500) };

/**
 * Text that the personal data of the test's events contains, and that occurs nowhere else in the events. If a stored
 * event contains it, personal data was not encrypted.
 */
const TRACE = "Trace4711";

function stored(event: NewEvent): Stored<NewEvent> {
  const place = { position: 7, stream: "s", version: 3, time: "2026-11-20T10:00:00.000Z", hash: "0".repeat(64) };
  return { ...(JSON.parse(JSON.stringify(event)) as NewEvent), ...place };
}

function folded({ type, data, meta, position }: Stored<NewEvent>) {
  return { type, data, meta: JSON.stringify(meta), position };
}

async function encrypting(world: ReturnType<typeof openKeys>) {
  const keyring = await world.open();
  const codec = encryptingCodec(keyring);
  const write = async (event: Event): Promise<Stored<NewEvent>> => {
    const [encoded] = await codec.encode([event]);
    return stored(finished(encoded!));
  };
  return { keyring, codec, write };
}

async function decoded(codec: Codec<Event>, kept: Stored<NewEvent>): Promise<Stored<Event>> {
  const [event] = await codec.decode([kept]);
  return event!;
}

async function dataOf(codec: Codec<Event>, kept: Stored<NewEvent>): Promise<unknown> {
  const [data] = await codec.decodeData([folded(kept)]);
  return data;
}

async function refusalOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (fault) {
    return fault;
  }
}

const ANN = { id: "1001", username: TRACE };
const attempt = { attempt_id: "a1", run_id: "r1", recipient: ANN };
const link = { event: "click", domain: "go.example", short_code: "x", bot: false, channels: [] };
const CLICK = {
  ...link,
  original_url: ` https:\\\\${TRACE}:p@ss@shop.example/tea?q=${TRACE}#${TRACE}`,
  normalized_url: `https://${TRACE}:pass@shop.example/tea?q=${TRACE}#${TRACE}`,
  ip: TRACE,
  user_agent: TRACE,
};

const PERSONAL: readonly Event[] = [
  makeEvent(
    "RecipientAdded",
    "e1",
    { recipient: ANN, name: TRACE, basis: "none", consent_for: TRACE, fields: { x: TRACE }, source: "list" },
    {},
  ),
  makeEvent("ConsentRecorded", "e9", { recipient: ANN, basis: "none", consent_for: TRACE }, {}),
  makeEvent("DirectMessageAttempted", "e2", { ...attempt, text: TRACE, variant: "A", day: "2026-11-20" }, {}),
  makeEvent("DirectMessageInDoubt", "e3", { ...attempt, detail: TRACE }, {}),
  makeEvent("LinkClicked", "e4", CLICK, {}),
  makeEvent("NotificationRequested", "e5", { message: TRACE, service: "s", level: "info" }, {}),
  makeEvent("MessageRequested", "e6", { text: TRACE }, {}),
  makeEvent("RequestAnswered", "e7", { digest: "d", status: 200, headers: {}, body: TRACE }, {}),
  makeEvent("SourceRead", "e8", { run_id: "r1", source: "followers", scope: "s", newest: TRACE, people: 1 }, {}),
];

test("any event is decrypted as written, and can be folded", async () => {
  await using world = openKeys();
  const { codec, write } = await encrypting(world);
  await fc.assert(
    fc.asyncProperty(anyEvent, async (event) => {
      const kept = await write(event);
      expect(await decoded(codec, kept)).toEqual(stored(event) as never);
      expect(await codec.open([kept])).toEqual([{ data: stored(event).data, erased: false }]);
      await dataOf(codec, kept);
    }),
    RUNS,
  );
});

test.each(PERSONAL)("$type is stored without personal data, and reads as erased without its key", async (event) => {
  await using world = openKeys();
  const { codec, write, keyring } = await encrypting(world);
  const kept = await write(event);
  expect(JSON.stringify(kept)).not.toContain(TRACE);
  expect(JSON.stringify(await decoded(codec, kept))).toContain(TRACE);
  // Deletes the key in the way in which the service does: the key of a day together with its day, every other key by
  // its reference.
  const ref = keyring.refOf(ciphertextOf(kept.data) ?? "");
  if (/^[am]/.test(ref)) await keyring.keys.change((keys) => keys.remove(ref));
  else await keyring.destroy([ref]);
  keyring.refresh();
  const read = await decoded(codec, kept);
  expect(JSON.stringify(read)).not.toContain(TRACE);
  expect(JSON.stringify(read.data)).toContain("erased");
  expect(read.meta).toMatchObject({ erased: true });
  await dataOf(codec, kept);
});

test("folds do not decrypt clicks and messages", async () => {
  await using world = openKeys();
  const { codec, write } = await encrypting(world);
  for (const event of PERSONAL) {
    const isOpened = /^(?:Direct.*|RecipientAdded|ConsentRecorded|SourceRead)$/.test(event.type);
    expect([event.type, JSON.stringify(await dataOf(codec, await write(event))).includes(TRACE)]).toEqual([
      event.type,
      isOpened,
    ]);
  }
});

test("a ciphertext cannot be decrypted in another event", async () => {
  await using world = openKeys();
  const { codec, write } = await encrypting(world);
  for (const event of PERSONAL) {
    const moved = { ...(await write(event)), id: "another" };
    const fault = await refusalOf(() => decoded(codec, moved));
    expect([classifyError(fault), String(fault)]).toEqual(["damaged", expect.stringMatching(/(for|to) another event/)]);
  }
});

test("a fold validates the stored data although its ciphertext stays closed", async () => {
  await using world = openKeys();
  const { codec, write } = await encrypting(world);
  const kept = await write(makeEvent("LinkClicked", "e4", CLICK, {}));
  const broken = { ...kept, data: { ...(kept.data as object), bot: "yes" } };
  expect(await refusalOf(() => dataOf(codec, broken))).toBeInstanceOf(InvalidEvent);
});

test("a click without personal data is stored unchanged", async () => {
  await using world = openKeys();
  const { write } = await encrypting(world);
  const data = { ...link, original_url: "https://shop.example/tea" };
  expect((await write(makeEvent("LinkClicked", "e9", data, {}))).data).toEqual(data as never);
});

test("unencrypted events are read unchanged, and without keys encrypted ones read as erased", async () => {
  await using world = openKeys();
  const { codec, write } = await encrypting(world);
  for (const event of PERSONAL) {
    expect(ENCRYPTED_TYPES).toContain(event.type);
    expect(await decoded(codec, stored(event))).toEqual(stored(event) as never);
    expect(JSON.stringify(await decoded(withoutKeys, await write(event)))).not.toContain(TRACE);
  }
});

describe("the recall of an event appended here", () => {
  const place = { position: 7, stream: "s", version: 3, time: "2026-11-20T10:00:00.000Z", hash: "0".repeat(64) };

  test.each(PERSONAL)("returns its data once: $type", async (event) => {
    await using world = openKeys();
    const { codec, write } = await encrypting(world);
    await write(event);
    expect(codec.recall?.(event, place)?.data).toBe(event.data);
    expect(codec.recall?.(event, place)).toBeUndefined();
  });

  test.each(["PersonForgotten", "PersonalDataExpired"] as const)("returns nothing after %s", async (type) => {
    await using world = openKeys();
    const { codec, write } = await encrypting(world);
    for (const event of PERSONAL) await write(event);
    codec.recall?.(makeEvent(type, "e0", {} as never, {}), place);
    expect(PERSONAL.map((event) => codec.recall?.(event, place))).toEqual(PERSONAL.map(() => undefined));
  });

  test("returns nothing for an erased recipient", async () => {
    await using world = openKeys();
    const { codec, write, keyring } = await encrypting(world);
    const event = PERSONAL[0]!;
    await write(event);
    await keyring.destroy(keyring.refsOf(ANN));
    expect(ciphertextOf((await write(event)).data)).toEndWith(":");
    expect(codec.recall?.(event, place)).toBeUndefined();
  });

  test("returns nothing if a deletion was read during the encryption", async () => {
    await using world = openKeys();
    const keyring = await world.open();
    const event = PERSONAL[0]!;
    const codec = encryptingCodec({
      ...keyring,
      async keysFor(owners) {
        const keys = await keyring.keysFor(owners);
        await keyring.destroy(keyring.refsOf(ANN));
        codec.recall?.(makeEvent("PersonForgotten", "e0", {} as never, {}), place);
        return keys;
      },
    });
    const [encoded] = await codec.encode([event]);
    expect(codec.recall?.(event, place)).toBeUndefined();
    expect(JSON.stringify(await decoded(codec, stored(finished(encoded!))))).not.toContain(TRACE);
  });

  test("revalidates the keys at a deletion", async () => {
    await using world = openKeys();
    const keyring = await world.open();
    let asked = 0;
    const codec = encryptingCodec({ ...keyring, revalidate: () => void asked++ });
    codec.recall?.(makeEvent("ProjectionRebuilt", "e0", {} as never, {}), place);
    expect(asked).toBe(0);
    codec.recall?.(makeEvent("PersonForgotten", "e0", {} as never, {}), place);
    expect(asked).toBe(1);
  });
});
