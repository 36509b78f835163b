import { afterEach, expect, jest, test } from "bun:test";
import { DatabaseSync } from "node:sqlite";
import { watchOthers } from "../src/sqlite/writer/watch-other-writers.ts";
import { temporaryLogs } from "./temporary-logs.ts";

const newLogPath = temporaryLogs();

afterEach(() => {
  jest.useRealTimers();
});

test("only committed appends of other connections are reported", () => {
  jest.useFakeTimers();
  const file = newLogPath();
  using own = new DatabaseSync(file);
  own.exec("PRAGMA journal_mode = WAL; CREATE TABLE events (position INTEGER PRIMARY KEY)");
  using other = new DatabaseSync(file);
  const told: number[] = [];
  const stop = watchOthers(
    own,
    100,
    (position) => told.push(position),
    (fault) => {
      throw fault;
    },
  );
  other.exec("INSERT INTO events VALUES (1)");
  own.exec("BEGIN IMMEDIATE; INSERT INTO events VALUES (2)");
  jest.advanceTimersByTime(1_000);
  expect(told).toEqual([]);
  own.exec("ROLLBACK");
  jest.advanceTimersByTime(1_000);
  expect(told).toEqual([1]);
  stop();
});
