import { expect, test } from "bun:test";
import { cutConnections } from "../test/postgres/cuts.ts";
import { startProxy } from "../test/postgres/proxy.ts";
import { startPostgres } from "../testing/postgres-server.ts";
import { isWhole } from "./tools.ts";

const ROUNDS = isWhole ? 2_000 : 240;

test(`${ROUNDS} times a connection is cut at some message of the protocol: nothing is lost or doubled, what is refused is not there`, async () => {
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
