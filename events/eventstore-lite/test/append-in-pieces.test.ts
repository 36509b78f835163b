import { expect, test } from "bun:test";
import { type NewEvent, openSqliteStore } from "eventstore-lite";
import { InvalidAppend } from "eventstore-lite/testing";
import { DatabaseSync } from "node:sqlite";
import { createTransform } from "../src/append/writer-transform.ts";
import { createLoad } from "../src/append/queue-load.ts";
import type { Piece, Reply } from "../src/append/writer-messages.ts";
import { prepareAppend } from "../src/append/prepare-append.ts";
import { createStartPieces } from "../src/append/send-in-pieces.ts";
import { identityCodec, type Codec } from "../src/codec.ts";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { DEFAULT_LIMITS } from "../src/limits.ts";
import { type AppendOptions } from "../src/event-store-interface.ts";
import { openWriter } from "../src/sqlite/connections.ts";
import { createWriter } from "../src/sqlite/writer/perform-write-requests.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Data of a large event. Each such event of an append is one piece, except the last. */
const LARGE = "x".repeat(70_000);
const largeEvents = (count: number): NewEvent[] => Array.from({ length: count }, () => newEvent("Large", LARGE));

/**
 * Test codec that changes no event, but leaves part of the encoding of events of type `Unfinished` to the writer
 * thread, where it fails in these tests.
 */
const codec: Codec<NewEvent> = {
  ...identityCodec<NewEvent>(),
  encode: (events) =>
    events.map((event) => (event.type === "Unfinished" ? { ...event, transformInput: "broken" } : event)),
};

/** Returns the pieces of an append as they go to the writer thread. */
function piecesOf(events: readonly NewEvent[], options: AppendOptions = {}): Piece[] {
  const pieces: Piece[] = [];
  const startPieces = createStartPieces(
    { clock: () => 0, isFollowed: () => true, sendPiece: (piece) => pieces.push(piece) },
    () => true,
    createLoad(DEFAULT_LIMITS),
    [],
  );
  const prepared = prepareAppend("a", events, options, codec, DEFAULT_LIMITS, startPieces);
  if (prepared instanceof Promise) throw new Error("the codec waits");
  void prepared.pieces?.end(prepared);
  return pieces;
}

function openTestWriter(databaseBytesMax = Number.MAX_SAFE_INTEGER) {
  const file = newLogPath();
  const { db } = openWriter(file, databaseBytesMax);
  const broken = () => {
    throw new Error("it does not fit");
  };
  const writer = createWriter(db, createTransform(broken, DEFAULT_LIMITS.eventBytes));
  const answers = (pieces: readonly Piece[]): (Reply | undefined)[] => pieces.map((piece) => writer.answerPiece(piece));
  /** Returns how many events other connections can read. */
  const events = (): number => {
    using reader = new DatabaseSync(file, { readOnly: true });
    return Number(reader.prepare("SELECT count(*) AS events FROM events").get()?.["events"]);
  };
  return { db, writer, answers, events };
}

test("an append in pieces is answered and visible only after its last piece", () => {
  const { writer, events } = openTestWriter();
  const [last, ...before] = piecesOf(largeEvents(4), { expected: 0 }).toReversed();
  expect(before).toHaveLength(3);
  for (const piece of before.toReversed()) {
    expect(writer.answerPiece(piece)).toBeUndefined();
    expect(events()).toBe(0);
  }
  expect(writer.answerPiece(last!)).toMatchObject({
    kind: "batch",
    verdicts: [0, 1, 4, 4],
    hashes: expect.stringMatching(/^[0-9a-f]{256}$/),
  });
  expect(events()).toBe(4);
});

test("a wrong version is refused after the last piece without an open transaction", () => {
  const { db, answers, events } = openTestWriter();
  const pieces = piecesOf(largeEvents(4), { expected: 7 });
  expect(answers(pieces.slice(0, 1))).toEqual([undefined]);
  expect(db.isTransaction).toBe(false);
  expect(answers(pieces.slice(1))).toMatchObject([undefined, undefined, { verdicts: [2, 0, 0, 0] }]);
  expect(events()).toBe(0);
});

test.each([1, 3])("an append leaves nothing if its event %i cannot be finished", (unfinished) => {
  const { answers, events } = openTestWriter();
  const broken = largeEvents(4).map((event, index) =>
    index === unfinished ? { ...event, type: "Unfinished" } : event,
  );
  const reply = { verdicts: [4, 0, 0, 0], refusals: ["an event could not be finished: it does not fit"] };
  expect(answers(piecesOf(broken, { key: "k" })).at(-1)).toMatchObject(reply);
  expect(events()).toBe(0);
  // A refused append uses up neither its key nor its positions.
  expect(answers(piecesOf(largeEvents(4), { key: "k" })).at(-1)).toMatchObject({ verdicts: [0, 1, 4, 4] });
});

test("a fault in the middle is answered once, after the last piece, and leaves nothing", () => {
  const { answers, events } = openTestWriter(400 * 1024);
  const replies = answers(piecesOf(largeEvents(9)));
  expect(replies.at(-1)).toMatchObject({ kind: "fault", fault: "full" });
  expect(replies.slice(0, -1)).toEqual(replies.slice(0, -1).map(() => undefined));
  expect(events()).toBe(0);
  expect(answers(piecesOf(largeEvents(2))).at(-1)).toMatchObject({ verdicts: [0, 1, 2, 2] });
});

test("an abandoned append leaves nothing", () => {
  const { writer, answers, events } = openTestWriter();
  for (const expected of [0, 7]) {
    answers(piecesOf(largeEvents(4), { expected }).slice(0, 2));
    expect(writer.answerPiece({ kind: "abandon" })).toEqual({ kind: "done" });
  }
  expect(events()).toBe(0);
  expect(answers(piecesOf(largeEvents(2))).at(-1)).toMatchObject({ verdicts: [0, 1, 2, 2] });
});

test("abandoning an append reports its fatal fault, and later appends are stopped", () => {
  const { db, writer, answers } = openTestWriter();
  const [first, second] = piecesOf(largeEvents(4));
  answers([first!]);
  db.close();
  expect(writer.answerPiece(second!)).toBeUndefined();
  expect(writer.answerPiece({ kind: "abandon" })).toMatchObject({ kind: "fault", fault: "fatal" });
  expect(answers(piecesOf(largeEvents(2))).at(-1)).toMatchObject({ kind: "fault", fault: "stopped" });
});

test("an append that ends before its last event is a fatal fault and leaves nothing", () => {
  const { db, answers, events } = openTestWriter();
  const pieces = piecesOf(largeEvents(4)).slice(0, 3);
  const cut = pieces.map((piece, index) => ({ ...piece, isLast: index === 2 }));
  expect(answers(cut).at(-1)).toMatchObject({ kind: "fault", fault: "fatal" });
  expect([db.isTransaction, events()]).toEqual([false, 0]);
});

test("a large append with an unencodable event leaves nothing, and concurrent appends succeed", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  const large = (count: number) => newEvents(count).map((event) => ({ ...event, meta: "x".repeat(300) }));
  const unwritable = { toJSON: () => 1n };
  const broken = large(1_000).map((event, index) => (index === 699 ? { ...event, data: unwritable } : event));
  for (let round = 0; round < 3; round += 1) {
    const refused = refusalOf(store.append("a", broken, { expected: round * 1_001 }));
    const appended = store.append("a", [newEvent()]);
    expect(await refused).toBeInstanceOf(InvalidAppend);
    expect(await appended).toMatchObject({ first: round * 1_001 + 1 });
    expect(await store.append("a", large(1_000), { expected: round * 1_001 + 1 })).toMatchObject({
      first: round * 1_001 + 2,
      last: round * 1_001 + 1_001,
    });
  }
  expect(await store.verify()).toMatchObject({ ok: true, checked: 3_003 });
});

test("an append made by an event's toJSON comes after the append in pieces", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  const inner: Promise<unknown>[] = [];
  const data = {
    toJSON() {
      inner.push(store.append("inner", largeEvents(3)));
      return {};
    },
  };
  const outer = await store.append("outer", [...largeEvents(2), newEvent("Tested", data), ...largeEvents(2)]);
  expect(outer).toMatchObject({ first: 1, last: 5 });
  expect(await Promise.all(inner)).toMatchObject([{ first: 6, last: 8 }]);
  const read = await take(store.read());
  expect(read.map(({ stream }) => stream)).toEqual([...Array(5).fill("outer"), ...Array(3).fill("inner")]);
  expect(await store.verify()).toMatchObject({ ok: true, checked: 8 });
});

test("a subscriber reads an append in pieces like any other", async () => {
  await using store = await openSqliteStore({ file: newLogPath() });
  const following = take(store.subscribe({ from: 1, signal: new AbortController().signal }), 6);
  await store.append("a", largeEvents(1));
  await store.append("a", largeEvents(5));
  expect(await following).toEqual(await take(store.read()));
});
