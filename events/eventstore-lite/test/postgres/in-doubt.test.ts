import { expect, test } from "bun:test";
import { cutConnections } from "./cuts.ts";
import { startProxy } from "./proxy.ts";
import { newDatabase } from "./server.ts";

const ROUNDS = 60;

test("a connection cut at any message leaves no append lost, doubled, or appended after it was refused", async () => {
  const url = await newDatabase();
  await using proxy = await startProxy(url);
  const report = await cutConnections(proxy, url, ROUNDS);
  expect(report).toMatchObject({ lost: [], zombies: [], doubled: [] });
  // Some were cut before they had come to the server, and some after.
  expect(report.unavailable).toBeGreaterThan(5);
  expect(report.acknowledged).toBeGreaterThan(5);
  expect(report.cuts).toBeGreaterThan(ROUNDS / 2);
});
