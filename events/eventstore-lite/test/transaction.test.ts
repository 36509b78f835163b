import { expect, test } from "bun:test";
import { DatabaseSync } from "node:sqlite";
import { createBoundaries, createTransaction } from "../src/sqlite/transaction.ts";

test("a transaction that throws is rolled back, and the next one can begin", () => {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE numbers (number)");
  const transaction = createTransaction(createBoundaries(db));
  const insert = (number: number) => db.prepare("INSERT INTO numbers VALUES (?)").run(number);
  const failing = () => {
    insert(1);
    throw new Error("on purpose");
  };
  expect(() => transaction(failing)).toThrow("on purpose");
  transaction(() => insert(2));
  expect(
    db
      .prepare("SELECT number FROM numbers")
      .all()
      .map((row) => row["number"]),
  ).toEqual([2]);
});
