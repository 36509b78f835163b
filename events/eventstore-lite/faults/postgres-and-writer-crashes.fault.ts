import { expect, test } from "bun:test";
import { startPostgres } from "../src/testing/postgres-server.ts";
import { isWhole } from "./required-tools.ts";
import { crashUnderLoad, UNHARMED } from "./crash-server-under-load.ts";

const ROUNDS = isWhole ? 120 : 16;

test(`${ROUNDS} crashes of writers and PostgreSQL lose and double no append, and refused ones stay absent`, async () => {
  await using server = await startPostgres({ durable: true });
  const report = await crashUnderLoad(server, await server.newDatabase(), ROUNDS);
  const { acknowledged, refused, inDoubt, unanswered, lost, zombies, doubled, gaps } = report;
  console.log(
    `PostgreSQL and its writers crashed ${ROUNDS} times: acknowledged ${acknowledged}, refused ${refused}, in doubt ${inDoubt}, ` +
      `unanswered ${unanswered}; lost ${lost.length}, refused but there ${zombies.length}, doubled ${doubled.length}, gaps ${gaps}`,
  );
  expect(report).toMatchObject(UNHARMED);
  expect(acknowledged).toBeGreaterThan(10 * ROUNDS);
  // Some crashes came while appends were under way; otherwise the test would show nothing.
  expect(refused).toBeGreaterThan(0);
});
