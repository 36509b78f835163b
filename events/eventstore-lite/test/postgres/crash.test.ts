import { expect, test } from "bun:test";
import { crashUnderLoad, UNHARMED } from "../../faults/crash-server-under-load.ts";
import { startPostgres } from "../../src/testing/postgres-server.ts";

/** Number of crashes: one of each kind. The fault test in faults/ has many more. */
const ROUNDS = 5;

test("crashes of writers and their server lose and double no append", async () => {
  await using server = await startPostgres();
  const report = await crashUnderLoad(server, await server.newDatabase(), ROUNDS);
  expect(report).toMatchObject(UNHARMED);
  expect(report.acknowledged).toBeGreaterThan(ROUNDS);
});
