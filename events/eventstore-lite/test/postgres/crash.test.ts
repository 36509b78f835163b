import { expect, test } from "bun:test";
import { crashUnderLoad, UNHARMED } from "../../faults/server-crashes.ts";
import { startPostgres } from "../../testing/postgres-server.ts";

/** Each kind of crash once; faults/ has many more rounds. */
const ROUNDS = 5;

test("three processes that are killed, and whose server crashes, lose and double nothing", async () => {
  await using server = await startPostgres();
  const report = await crashUnderLoad(server, await server.newDatabase(), ROUNDS);
  expect(report).toMatchObject(UNHARMED);
  expect(report.acknowledged).toBeGreaterThan(ROUNDS);
});
