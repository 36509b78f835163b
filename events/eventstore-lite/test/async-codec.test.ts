import { expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Codec, type NewEvent, openSqliteStore } from "eventstore-lite";
import { newEvent, newEvents, refusalOf, take } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

/** Test codec that waits before each answer, like one that fetches keys over a network. */
const waiting: Codec<NewEvent> = {
  async encode(events) {
    await turn();
    if (events.some(({ type }) => type === "Refused")) throw new Error("refused");
    return events.map((event) => ({ ...event, data: { stored: event.data } }));
  },
  async decode(stored) {
    await turn();
    if (stored.some(({ type }) => type === "Unknown")) throw new Error("unknown type");
    return stored.map((event) => ({ ...event, data: opened(event.data) }));
  },
  async decodeData(stored) {
    await turn();
    return stored.map(({ data }) => opened(data));
  },
};

function opened(data: unknown): unknown {
  return (data as { stored: unknown }).stored;
}

function open() {
  return openSqliteStore({ file: newLogPath(), codec: waiting });
}

test("an asynchronous codec reads back what it wrote, in order, by every read", async () => {
  await using store = await open();
  const { signal } = new AbortController();
  const following = [1, 2].map(() => take(store.subscribe({ from: 1, signal }), 1_200));
  const events = newEvents(1_200);
  for (let at = 0; at < events.length; at += 100) await store.append("a", events.slice(at, at + 100));
  const data = events.map((event) => event.data);
  expect((await take(store.read())).map((event) => event.data)).toEqual(data);
  expect((await take(store.readFolded())).flat().map((event) => event.data)).toEqual(data);
  const backwards = await take(store.read({ backwards: true }));
  expect(backwards.map(({ position }) => position)).toEqual(events.map((_, at) => events.length - at));
  for (const live of await Promise.all(following)) expect(live).toEqual(await take(store.read()));
});

test("an append refused by an asynchronous codec appends nothing", async () => {
  await using store = await open();
  expect(await refusalOf(store.append("a", [newEvent("Refused")]))).toMatchObject({ message: "refused" });
  expect(await store.head()).toMatchObject({ position: 0 });
});

test("events before an undecodable one are read", async () => {
  await using store = await open();
  await store.append("a", [newEvent("Known"), newEvent("Known"), newEvent("Unknown"), newEvent("Known")]);
  const read: number[] = [];
  const reading = (async () => {
    for await (const { position } of store.read()) read.push(position);
  })();
  expect(await refusalOf(reading)).toMatchObject({ message: "unknown type" });
  expect(read).toEqual([1, 2]);
});
