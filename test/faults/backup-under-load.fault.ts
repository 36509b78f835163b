import { expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { BEARER, openInstallation, until, type Installation, stop } from "../harness/process.ts";
import { click, startLoad } from "./click-load.ts";
import { expectWhole, lossesOf } from "./expect-whole-log.ts";

const BACKUPS = 10;

test(`each of ${BACKUPS} backups under load restores whole, with all clicks acknowledged before it`, async () => {
  await using world = await openInstallation();
  const service = await world.serve();
  using load = startLoad({ connections: 8, service: () => Promise.resolve(service) });
  const backups: { readonly folder: string; readonly acknowledged: ReadonlySet<string> }[] = [];
  for (let number = 1; number <= BACKUPS; number++) {
    const before = load.acknowledged.size;
    await until(
      () => Promise.resolve(load.acknowledged.size),
      (size) => size > before + 100,
    );
    const acknowledged = new Set(load.acknowledged);
    const folder = join(world.directory, `backup-${number}`);
    expect(await world.execute("backup", folder)).toMatchObject({ code: 0 });
    backups.push({ folder, acknowledged });
  }
  await load.stop();
  expect([...load.answers.keys()]).toEqual([202]);
  expect(await stop(service)).toBe(0);

  const restored = [];
  for (const { folder, acknowledged } of backups) restored.push(await restore(world, folder, acknowledged));
  const lost = restored.flatMap((drill) => drill.lost);
  const slowestMs = Math.max(...restored.map(({ servingMs }) => servingMs));
  console.log(
    `${BACKUPS} backups under load: acknowledged before them ${backups.at(-1)?.acknowledged.size}, ` +
      `lost ${lost.length}, slowest start from a copy ${slowestMs.toFixed(0)} ms`,
  );
  expect(lost).toEqual([]);
});

/**
 * Rehearses the loss of a machine: another one receives the backup and the master key, restores the log, then serves
 * it.
 */
async function restore(
  from: Installation,
  folder: string,
  acknowledged: ReadonlySet<string>,
): Promise<{ lost: readonly string[]; servingMs: number }> {
  await using place = await openInstallation();
  copyFileSync(join(from.directory, "reachlog.key"), join(place.directory, "reachlog.key"));
  expect(await place.execute("restore", folder)).toMatchObject({ code: 0 });
  expect(await place.execute("audit", "verify")).toMatchObject({ code: 0 });
  const startedAt = performance.now();
  const service = await place.serve();
  const servingMs = performance.now() - startedAt;
  expect((await service.post("/api/tracking/event", click(0), BEARER)).status).toBe(202);
  expect(await stop(service)).toBe(0);
  await expectWhole(place);
  return { lost: (await lossesOf(place, acknowledged)).lost, servingMs };
}
