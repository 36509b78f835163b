// These tests start the service or commands as processes.
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { authorize, BEARER, exported, openInstallation, stop, type Installation } from "../harness/process.ts";

/** Starts a run. Returns how it ended, and the causes of the restores in the log. */
async function outcomeOf(world: Installation): Promise<unknown> {
  const service = await world.host();
  const run = await service.post("/social/run", {}, { prefer: "wait=300", ...BEARER });
  const { reason, sent } = (await run.json()) as Record<string, unknown>;
  const told = (await exported(world)).filter(({ type }) => type === "LogRestored");
  await stop(service);
  return { reason, sent, causes: told.map(({ data }) => data["cause"]) };
}

test("a restore and an import are recorded, and no message is sent that day", async () => {
  await using world = await openInstallation();
  const row = "username,basis\nada_builds,opt_in\n";
  await world.command("recipients", "import", world.file("people.csv", row));
  await authorizedOnly(world);
  const log = join(world.directory, "reachlog.sqlite");
  const kept = join(world.directory, "kept");
  // Makes both copies of the log before the first message.
  expect(await world.command("backup", kept)).toMatchObject({ code: 0 });
  expect(await world.command("audit", "export", "--encrypted", "--out", `${kept}.jsonl`)).toMatchObject({ code: 0 });
  expect(await outcomeOf(world)).toEqual({ reason: "completed", sent: 1, causes: [] });

  const beside = ["reachlog.checkpoint", "reachlog.sqlite", "reachlog.sqlite-wal", "reachlog.sqlite-shm"];
  const clear = (): void => beside.forEach((name) => rmSync(join(world.directory, name), { force: true }));
  clear();
  copyFileSync(join(kept, "log.sqlite"), log);
  expect(await outcomeOf(world)).toEqual({ reason: "log_restored", sent: 0, causes: ["restore"] });
  clear();
  expect(await world.command("audit", "import", `${kept}.jsonl`)).toMatchObject({ code: 0 });
  expect(await outcomeOf(world)).toEqual({ reason: "log_restored", sent: 0, causes: ["import"] });
  expect(world.sandbox.x.messages.total).toBe(1);
});

/** Has an operator authorize the account, then stops the service. */
async function authorizedOnly(world: Installation): Promise<void> {
  const service = await world.host();
  await authorize(service, world.sandbox);
  await stop(service);
}
