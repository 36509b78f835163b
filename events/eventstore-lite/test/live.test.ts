import { expect, test } from "bun:test";
import { type Codec, type NewEvent, openSqliteStore } from "eventstore-lite";
import { newEvents, take } from "../src/contract/events.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("what this process appends reaches all subscribers from memory, decoded once", async () => {
  let decoded = 0;
  const counting: Codec<NewEvent> = {
    encode: (event) => event,
    decode(stored) {
      decoded += 1;
      return stored;
    },
    decodeData: ({ data }) => data,
  };
  await using store = await openSqliteStore({ file: newLogPath(), codec: counting });
  const { signal } = new AbortController();
  const subscribers = [1, 2, 3].map(() => take(store.subscribe({ from: 1, signal }), 10));
  await store.append("a", newEvents(10));
  await Promise.all(subscribers);
  expect(decoded).toBe(10);
});
