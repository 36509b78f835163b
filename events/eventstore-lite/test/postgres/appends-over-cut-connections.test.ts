import { expect, test } from "bun:test";
import { openPostgresStore } from "eventstore-lite/postgres";
import { StoreUnavailable } from "eventstore-lite/testing";
import { newEvent, refusalOf } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { cutConnections } from "./cut-connections.ts";
import { startProxy } from "../../src/testing/faulty-postgres-proxy.ts";
import { newDatabase } from "../../src/testing/postgres-server.ts";

const ROUNDS = 60;

test("cut connections lose and double no append, and refused ones stay absent", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  const report = await cutConnections(proxy, url, ROUNDS);
  expect(report).toMatchObject({ lost: [], zombies: [], doubled: [] });
  // Some connections were cut before the append reached the server, and some after.
  expect(report.unavailable).toBeGreaterThan(5);
  expect(report.acknowledged).toBeGreaterThan(5);
  expect(report.cuts).toBeGreaterThan(ROUNDS / 2);
});

test("the server refuses a batch that arrives after it was reported as absent", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  await using store = await openPostgresStore({ url: proxy.url });
  await store.append("a", [newEvent()]);
  let lost = 0;
  proxy.decide(({ application, from, connection }) => {
    if (application !== "eventstore-lite writer") return "pass";
    if (lost === 0) lost = connection;
    return connection === lost && from === "client" ? "strand" : "pass";
  });
  expect(await refusalOf(store.append("a", [newEvent("Late")]))).toBeInstanceOf(StoreUnavailable);

  const answers: string[] = [];
  const answered = Promise.withResolvers<void>();
  proxy.decide(({ from, type, connection }) => {
    if (connection === lost && from === "server") answers.push(type);
    if (answers.at(-1) === "Z") answered.resolve();
    return "pass";
  });
  proxy.release();
  await answered.promise;
  // The server sent an ErrorResponse, and no part of a result.
  expect(answers).toContain("E");
  expect(answers).not.toContain("C");
  expect(await store.append("a", [newEvent()], { expected: 1 })).toMatchObject({ first: 2 });
});
