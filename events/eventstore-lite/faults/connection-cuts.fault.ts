import { expect, test } from "bun:test";
import { cutConnections } from "../test/postgres/cut-connections.ts";
import { startProxy } from "../src/testing/faulty-postgres-proxy.ts";
import { startPostgres } from "../src/testing/postgres-server.ts";
import { isWhole } from "./required-tools.ts";

const ROUNDS = isWhole ? 2_000 : 240;

test(`${ROUNDS} rounds of cut connections lose and double no append, and refused ones stay absent`, async () => {
  await using server = await startPostgres({ durable: true });
  const url = await server.newDatabase();
  await using proxy = await startProxy(url);
  const report = await cutConnections(proxy, url, ROUNDS);
  const { cuts, acknowledged, unavailable, lost, zombies, doubled } = report;
  console.log(
    `connections cut ${cuts}: acknowledged ${acknowledged}, refused ${unavailable}; lost ${lost.length}, ` +
      `refused but there ${zombies.length}, doubled ${doubled.length}`,
  );
  expect(report).toMatchObject({ lost: [], zombies: [], doubled: [] });
  expect(cuts).toBeGreaterThan(ROUNDS);
});
