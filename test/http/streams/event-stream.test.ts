// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { openSqliteStore, type EventStore } from "eventstore-lite";
import { codec, makeEvent, type Event } from "../../../events/event-types-and-codec.ts";
import { openEventStream, openPositionStream, type EventStreamQuery } from "../../../src/http/streams/event-stream.ts";
import { makeId } from "../../../src/platform/clock-ids-and-timers.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { newLogFile } from "../../harness/in-process/temporary-log.ts";

interface Message {
  readonly id: number;
  readonly type: string;
}

const disposed = disposedAfterEach();

async function newStore(): Promise<EventStore<Event>> {
  return disposed(await openSqliteStore<Event>({ file: newLogFile(), codec }));
}

async function addClicks(store: EventStore<Event>, count: number, code = "a"): Promise<void> {
  const link = { domain: "go.example", short_code: code, original_url: "https://example.com" };
  const data = { ...link, event: "click", bot: false, channels: [] };
  const clicks = Array.from({ length: count }, () => makeEvent("LinkClicked", makeId(), data, {}));
  await store.append(`link-go.example/${code}`, clicks);
}

/**
 * Opens an event stream. `read` parses its next `upTo` messages, or all up to its end by default. Parts that are not
 * messages, such as comments, are collected in `others`.
 */
function follow(
  store: EventStore<Event>,
  query: EventStreamQuery,
  timer?: (run: () => void, ms: number) => () => void,
) {
  const stop = new AbortController();
  const reader = openEventStream(store, query, stop.signal, timer && { timer }).getReader();
  const others: string[] = [];
  const waiting: Message[] = [];
  return {
    stop: () => stop.abort(),
    cancel: () => reader.cancel(),
    others,
    async read(upTo = Infinity): Promise<readonly Message[]> {
      while (waiting.length < upTo) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const part of new TextDecoder()
          .decode(value)
          .split("\n\n")
          .filter((text) => text !== "")) {
          const [, id, data] = /^id: (\d+)\ndata: (.*)$/.exec(part) ?? [];
          if (id === undefined || data === undefined) others.push(part);
          else waiting.push({ id: Number(id), type: (JSON.parse(data) as Message).type });
        }
      }
      return waiting.splice(0, upTo);
    },
  };
}

const idsOf = (messages: readonly Message[]): readonly number[] => messages.map(({ id }) => id);

test("a stream sends recorded events, then new ones, in order and once", async () => {
  const store = await newStore();
  await addClicks(store, 3);
  const client = follow(store, { from: 2 });
  expect(idsOf(await client.read(2))).toEqual([2, 3]);
  const live = client.read(2);
  await addClicks(store, 2);
  expect(idsOf(await live)).toEqual([4, 5]);
  expect(client.others).toEqual(["retry: 2000"]);
  await client.cancel();
});

test("a stream holds only the requested types and stream", async () => {
  const store = await newStore();
  await addClicks(store, 1, "a");
  await store.append("requests", [makeEvent("MessageRequested", makeId(), { text: "hello" }, {})]);
  await addClicks(store, 1, "b");
  const byType = follow(store, { from: 1, types: ["MessageRequested"] });
  expect(await byType.read(1)).toEqual([{ id: 2, type: "MessageRequested" }]);
  const byStream = follow(store, { from: 1, stream: "link-go.example/b" });
  expect(await byStream.read(1)).toEqual([{ id: 3, type: "LinkClicked" }]);
  await byType.cancel();
  await byStream.cancel();
});

test("an idle stream sends a heartbeat, and then the next event", async () => {
  const store = await newStore();
  const timers: (() => void)[] = [];
  const client = follow(store, { from: 1 }, (run) => {
    timers.push(run);
    return () => {};
  });
  const first = client.read(1);
  while (timers.length < 1) await new Promise(setImmediate);
  timers[0]?.();
  while (timers.length < 2) await new Promise(setImmediate);
  expect(client.others).toEqual(["retry: 2000", ": heartbeat"]);
  await addClicks(store, 1);
  expect(idsOf(await first)).toEqual([1]);
  await client.cancel();
});

test("a reader that pauses still receives all events", async () => {
  const store = await newStore();
  const client = follow(store, { from: 1 });
  for (let round = 0; round < 20; round++) await addClicks(store, 100);
  expect(idsOf(await client.read(2_000))).toEqual(Array.from({ length: 2_000 }, (_, index) => index + 1));
  await client.cancel();
});

test("a stream ends when the service stops", async () => {
  const store = await newStore();
  await addClicks(store, 1);
  const client = follow(store, { from: 1 });
  await client.read(1);
  const rest = client.read();
  client.stop();
  expect(await rest).toEqual([]);
});

test("a client that disconnects ends its subscription", async () => {
  const store = await newStore();
  let ended = false;
  const watched: Pick<EventStore<Event>, "subscribeBatches"> = {
    subscribeBatches: (query) => {
      query.signal.addEventListener("abort", () => (ended = true));
      return store.subscribeBatches(query);
    },
  };
  const reader = openEventStream(watched, { from: 1 }, new AbortController().signal).getReader();
  await reader.read();
  await reader.cancel();
  expect(ended).toBe(true);
});

test("a read error of the log fails the stream and releases its reader", async () => {
  const store = await newStore();
  await addClicks(store, 1);
  let goneTimes = 0;
  const failing: Pick<EventStore<Event>, "subscribeBatches"> = {
    async *subscribeBatches(query) {
      for await (const batch of store.subscribeBatches(query)) {
        yield batch;
        throw new Error("disk I/O error");
      }
    },
  };
  const onGone = () => void goneTimes++;
  const reader = openEventStream(failing, { from: 1 }, new AbortController().signal, { onGone }).getReader();
  // Reads two messages: the reconnection delay and the click.
  for (let message = 0; message < 2; message++) expect((await reader.read()).done).toBe(false);
  expect(await reader.read().catch((fault: unknown) => fault)).toEqual(new Error("disk I/O error"));
  expect(goneTimes).toBe(1);
});

test("a position stream sends the newest position each second, if it changed", async () => {
  const waits: { readonly run: () => void; readonly ms: number }[] = [];
  const timer = (run: () => void, ms: number) => {
    const wait = { run, ms };
    waits.push(wait);
    return () => void waits.splice(waits.indexOf(wait), 1);
  };
  const passSecond = (): void => {
    for (const wait of waits.filter(({ ms }) => ms === 1_000)) wait.run();
  };
  let position = 4;
  const stop = new AbortController();
  const reader = openPositionStream(() => position, 4, stop.signal, { timer }).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await read()).toBe("retry: 2000\n\n");
  expect(await read()).toBe("id: 4\ndata: 4\n\n");
  const told: string[] = [];
  const next = read().then((text) => told.push(text));
  const passSeconds = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds && told.length === 0; second++) {
      await Bun.sleep(1);
      passSecond();
    }
  };
  await passSeconds(3);
  expect(told).toEqual([]);
  position = 9;
  await passSeconds(Infinity);
  await next;
  expect(told).toEqual(["id: 9\ndata: 9\n\n"]);
  stop.abort();
  expect((await reader.read()).done).toBe(true);
});

test("a long position stream does not accumulate listeners", async () => {
  let listeners = 0;
  const count =
    (change: 1 | -1, method: "addEventListener" | "removeEventListener") =>
    (original: AbortSignal, args: Parameters<AbortSignal["addEventListener"]>) => {
      listeners += change;
      original[method](...args);
    };
  const [added, removed] = [count(1, "addEventListener"), count(-1, "removeEventListener")];
  const any = AbortSignal.any;
  AbortSignal.any = (signals) => {
    const signal = any.call(AbortSignal, signals);
    return new Proxy(signal, {
      get(target, name) {
        if (name === "addEventListener") return (...args: never) => added(target, args);
        if (name === "removeEventListener") return (...args: never) => removed(target, args);
        return Reflect.get(target, name, target) as unknown;
      },
    });
  };
  const stop = new AbortController();
  let position = 0;
  const atOnce = (run: () => void, ms: number) => {
    if (ms === 1_000) queueMicrotask(run);
    return () => {};
  };
  const reader = openPositionStream(() => ++position, 1, stop.signal, { timer: atOnce }).getReader();
  AbortSignal.any = any;
  for (let read = 0; read < 50; read++) await reader.read();
  expect(listeners).toBeLessThan(3);
  await reader.cancel();
});
