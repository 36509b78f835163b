import { expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import { StoreOverloaded } from "eventstore-lite/testing";
import { DatabaseSync } from "node:sqlite";
import { newEvent, newEvents, refusalOf } from "../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

test("the queue refuses appends beyond its limit of events and accepts them once empty", async () => {
  await using store = await openSqliteStore({ file: newLogPath(), limits: { queuedEvents: 10 } });
  const accepted = Array.from({ length: 10 }, () => store.append("a", [newEvent()]));
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreOverloaded);
  expect(await Promise.all(accepted)).toHaveLength(10);
  expect(await store.append("a", newEvents(10))).toMatchObject({ first: 11 });
});

test("the queue refuses appends beyond its limit of characters", async () => {
  await using store = await openSqliteStore({ file: newLogPath(), limits: { queuedChars: 3_000 } });
  const accepted = store.append("a", [newEvent("T", "x".repeat(2_000))]);
  expect(await refusalOf(store.append("a", [newEvent("T", "x".repeat(2_000))]))).toBeInstanceOf(StoreOverloaded);
  expect(await accepted).toMatchObject({ first: 1 });
});

test("an append fails as overloaded if another connection holds the write lock too long", async () => {
  const file = newLogPath();
  await using store = await openSqliteStore({ file });
  const blocker = new DatabaseSync(file);
  blocker.exec("BEGIN IMMEDIATE");
  expect(await refusalOf(store.append("a", [newEvent()]))).toBeInstanceOf(StoreOverloaded);
  blocker.exec("ROLLBACK");
  blocker.close();
  expect(await store.append("a", [newEvent()])).toMatchObject({ first: 1 });
});
