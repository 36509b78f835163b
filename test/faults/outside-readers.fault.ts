import { expect, test } from "bun:test";
import { join } from "node:path";
import { openInstallation, until, stop } from "../harness/process.ts";
import { startLoad } from "./click-load.ts";
import { has, run } from "./required-tools.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";

/** Number of reads by each outside program while clicks arrive. */
const READS = 15;

test.skipIf(!has("sqlite3"))("no request fails while outside readers read the log under load", async () => {
  await using world = await openInstallation();
  const file = join(world.directory, "reachlog.sqlite");
  const service = await world.serve();
  using load = startLoad({ connections: 16, service: () => Promise.resolve(service) });
  await until(
    () => Promise.resolve(load.acknowledged.size),
    (size) => size > 0,
  );
  const counts: number[] = [];
  const readers = [
    async () => counts.push(Number(await run("sqlite3", file, "SELECT count(*) FROM events"))),
    async () => expect(await world.execute("audit", "export")).toMatchObject({ code: 0 }),
    async () => expect(await world.execute("stats")).toMatchObject({ code: 0 }),
  ];
  await Promise.all(
    readers.map(async (read) => {
      for (let time = 0; time < READS; time++) await read();
    }),
  );
  await load.stop();
  // Counts once more after the load, because all readers may have finished before the log grew.
  await readers[0]?.();
  expect(await stop(service)).toBe(0);

  const { lost } = await lossesOf(world, load.acknowledged);
  const failed = [...load.answers].filter(([status]) => status >= 500).reduce((sum, [, count]) => sum + count, 0);
  console.log(
    `outside readers: ${READS} reads by each of ${readers.length}, acknowledged ${load.acknowledged.size}, ` +
      `lost ${lost.length}, 5xx ${failed}, cut off ${load.unanswered}`,
  );
  expect([failed, load.unanswered, lost]).toEqual([0, 0, []]);
  // Each count is at least as high as the one before: a reader never sees the log shrink.
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(counts.at(-1)).toBeGreaterThan(counts[0] ?? 0);
  await expectWhole(world);
});
