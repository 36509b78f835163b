// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openInstallation, until, type Installation, stop } from "../harness/process.ts";

/** A world whose log has one import and a snapshot of every projection. */
async function servedWorld(): Promise<Installation> {
  const world = await openInstallation();
  await world.command("recipients", "import", world.file("p.csv", "username,basis\nada_builds,opt_in\n"));
  const service = await world.host();
  await stop(service);
  return world;
}

/** Changes a stored snapshot without the service. */
function changeSnapshot(world: Installation, sql: string): void {
  const db = new DatabaseSync(join(world.directory, "reachlog.sqlite"));
  db.exec(`UPDATE snapshots SET ${sql}`);
  db.close();
}

test("replay corrects the statistics of a running service", async () => {
  await using world = await servedWorld();
  changeSnapshot(world, `state = '{"sent":77,"skipped":0,"failed":0}' WHERE name = 'stats'`);
  const service = await world.host();
  const sent = async () => ((await (await service.get("/social/stats")).json()) as { sent: number }).sent;
  expect(await sent()).toBe(77);
  const replayed = await world.command("replay");
  expect(replayed.code).toBe(1);
  expect(replayed.out).toContain("sent: stored 77, rebuilt 0");
  await until(sent, (count) => count === 0);
  expect(service.log()).toContain('"projection":"stats"');
  expect(await stop(service)).toBe(0);
  expect(await world.command("replay")).toMatchObject({ code: 0, err: "" });
});

test("serve refuses a snapshot ahead of the log until replay has rebuilt it", async () => {
  await using world = await servedWorld();
  changeSnapshot(world, "position = 1000 WHERE name = 'contacts'");
  const refused = await world.command("serve");
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("reachlog replay")]);
  expect(refused.err).not.toMatch(/^\s+at /m);
  expect(await world.command("replay")).toMatchObject({ code: 1 });
  const service = await world.host();
  expect((await service.get("/api/health")).status).toBe(200);
});
