// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { openSqliteStore, type Codec, type NewEvent, type Recorded as Stored } from "eventstore-lite";
import * as fc from "fast-check";
import { codec, compileSpecs, createCodec, eventSpecs, makeEvent } from "../../events/event-types-and-codec.ts";
import { InvalidEvent } from "../../events/define-event.ts";
import { defineEvent } from "../../events/define-event.ts";
import { anyEvent } from "./generate-events-from-schema.ts";
import { newLogFile } from "../harness/in-process/temporary-log.ts";

const ID = "019a9f00-0000-7000-8000-000000000001";

const message = makeEvent("MessageRequested", ID, { text: "hello" }, { caller: "ann" });

function stored(event: NewEvent): Stored<NewEvent> {
  return {
    ...event,
    position: 7,
    stream: "requests",
    version: 3,
    time: "2026-11-20T10:00:00.000Z",
    hash: "0".repeat(64),
  };
}

/** Converts an event to the stored form that the codec decodes for a fold. */
function folded({ type, data, meta }: NewEvent): Parameters<Codec<NewEvent>["decodeData"]>[0][number] {
  return { position: 7, type, data, meta: JSON.stringify(meta) };
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof InvalidEvent) return error.message;
    throw error;
  }
  throw new Error("it was accepted");
}

test("encoding and decoding leave an event of the catalog unchanged", () => {
  expect(codec.encode([message])).toEqual([message]);
  expect(codec.decode([stored(message)])).toEqual([stored(message)] as never);
});

test("makeEvent adds the current schema version and refuses unknown types", () => {
  expect(message.meta).toEqual({ schema: 1, caller: "ann" });
  expect(refusal(() => makeEvent("Nonsense" as "MessageRequested", ID, { text: "" }, {}))).toContain("Nonsense");
});

describe("the refusal of an event with", () => {
  const secret = "ann@example.com";
  const direct = { event_id: ID, channel: "chat" };
  const broken: [string, NewEvent, string][] = [
    ["a wrong type", { ...message, data: { text: { secret } } }, "/text"],
    ["a missing field", { ...message, data: {} }, "/text"],
    ["an unknown field", { ...message, data: { text: "x", more: secret } }, "/more"],
    ["data that is no object", { ...message, data: secret }, "MessageRequested"],
    ["null as data", { ...message, data: null }, "MessageRequested"],
    [
      "a value outside a closed set",
      { ...message, type: "DispatchRetryRequested", data: { ...direct, source: 1, channel: secret } },
      "/channel",
    ],
    [
      "a fraction in place of an integer",
      { ...message, type: "DispatchRetryRequested", data: { ...direct, source: 1.5 } },
      "/source",
    ],
  ];

  test.each(broken)("%s", (_name, event, path) => {
    const written = refusal(() => codec.encode([event as never]));
    const read = refusal(() => codec.decode([stored(event)]));
    for (const told of [written, read]) {
      expect(told).toContain(event.type);
      expect(told).toContain(path);
      expect(told).not.toContain(secret);
    }
    expect(read).toContain("at 7");
  });

  test.each(broken)("%s in a fold, except an unknown field", (_name, event, path) => {
    const folding = () => codec.decodeData([folded(event)]);
    if (path === "/more") expect(folding()).toEqual([event.data]);
    else expect(refusal(folding)).toContain(`${event.type} at 7: ${path.startsWith("/") ? path : ""}`);
  });

  test("an unknown type", () => {
    const event = { ...message, type: "Nonsense" };
    expect(refusal(() => codec.encode([event as never]))).toContain(
      "Nonsense written: this version of reachlog has no such event",
    );
    for (const read of [() => codec.decode([stored(event)]), () => codec.decodeData([folded(event)])]) {
      expect(refusal(read)).toContain("Nonsense at 7: this version of reachlog has no such event");
    }
  });

  test.each([{}, { schema: "1" }])("no schema version (meta %j)", (meta) => {
    const event = { ...message, meta };
    expect(refusal(() => codec.encode([event as never]))).toContain(
      "MessageRequested written: it has no schema version",
    );
    expect(refusal(() => codec.decode([stored(event)]))).toContain("MessageRequested at 7: it has no schema version");
  });

  test("a newer schema version", () => {
    const event = { ...message, meta: { schema: 2 } };
    expect(refusal(() => codec.encode([event]))).toContain("not of version 1");
    expect(refusal(() => codec.decode([stored(event)]))).toContain("newer reachlog");
    expect(refusal(() => codec.decodeData([folded(event)]))).toContain("newer reachlog");
  });

  test.each([0, -1, 0.5])("the impossible schema version %p", (schema) => {
    expect(refusal(() => codec.decode([stored({ ...message, meta: { schema } })]))).toContain("MessageRequested");
  });
});

describe("an event with two schema changes", () => {
  // Version 1 has the member `name`. Version 2 has `first` and `last` instead. Version 3 adds `language`.
  const Greeted = defineEvent(
    "Greeted",
    Type.Object(
      { first: Type.String(), last: Type.String(), language: Type.String() },
      { additionalProperties: false },
    ),
    {
      version: 3,
      upcasts: {
        1: (data) => {
          const [first = "", last = ""] = (data as { name: string }).name.split(" ");
          return { first, last };
        },
        2: (data) => ({ ...(data as object), language: "en" }),
      },
    },
  );

  test("is upcast to the current version from any stored version", async () => {
    const file = newLogFile();
    const raw: NewEvent[] = [
      { id: ID, type: "Greeted", data: { name: "Ann Bell" }, meta: { schema: 1, caller: "old" } },
      { id: ID, type: "Greeted", data: { first: "Bea", last: "Cole" }, meta: { schema: 2 } },
      { id: ID, type: "Greeted", data: { first: "Cy", last: "Dow", language: "fr" }, meta: { schema: 3 } },
    ];
    {
      await using old = await openSqliteStore({ file });
      await old.append("greetings", raw);
    }
    await using store = await openSqliteStore({ file, codec: createCodec<NewEvent>(compileSpecs([Greeted])) });
    const read = await Array.fromAsync(store.read());
    expect(read.map(({ data, meta }) => [data, meta])).toEqual([
      [
        { first: "Ann", last: "Bell", language: "en" },
        { schema: 3, caller: "old" },
      ],
      [{ first: "Bea", last: "Cole", language: "en" }, { schema: 3 }],
      [{ first: "Cy", last: "Dow", language: "fr" }, { schema: 3 }],
    ]);
    // The events were converted only for reading. The stored events and their hash chain are unchanged.
    expect(await store.verify()).toMatchObject({ ok: true, checked: 3 });
  });

  test("is validated after upcasting", () => {
    const lifting: Codec<NewEvent> = createCodec(compileSpecs([Greeted]));
    const event = stored({ id: ID, type: "Greeted", data: { first: 1, last: "Cole" }, meta: { schema: 2 } });
    expect(refusal(() => lifting.decode([event]))).toContain("/first");
  });

  test("cannot be written in an older version", () => {
    const lifting = createCodec(compileSpecs([Greeted]));
    const event = { id: ID, type: "Greeted", data: { name: "Ann" }, meta: { schema: 1 } };
    expect(refusal(() => lifting.encode([event]))).toContain("not of version 3");
  });

  test("is refused at compilation if an upcast is missing", () => {
    const { 1: first } = Greeted.upcasts;
    if (first === undefined) throw new Error("the example has no first step");
    expect(() => compileSpecs([{ ...Greeted, upcasts: { 1: first } }])).toThrow("Greeted has no upcast from version 2");
  });
});

test("no two events of the catalog share a type", () => {
  expect(new Set(eventSpecs.map(({ type }) => type)).size).toBe(eventSpecs.length);
});

test("every valid event is read from a log as it was appended", async () => {
  await using store = await openSqliteStore({ file: newLogFile(), codec });
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(anyEvent, { minLength: 1, maxLength: 20 }), async (events) => {
      const { first, last } = await store.append("any", events);
      const read = await Array.fromAsync(store.read({ from: first, to: last }));
      expect(read.map(({ id, type, data, meta }) => ({ id, type, data, meta }))).toEqual(events as never);
      for (const { type } of events) seen.add(type);
    }),
    { numRuns: 200 },
  );
  expect(seen.size).toBe(eventSpecs.length);
});
