import { expect, test } from "bun:test";
import { cpSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { audit } from "../../src/commands/audit.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { toExitCode } from "../../src/commands/shared/exit-code.ts";
import { replay } from "../../src/commands/replay.ts";
import { capture } from "../harness/capture-command.ts";
import { openInstallation, type Installation } from "../harness/process.ts";
import { forget } from "../harness/in-process/operation-commands.ts";

/** Number of kills. Each comes soon after the log has grown, mostly between the event and the end of the deletion. */
const ROUNDS = 10;

const TRACES = /ada_builds|Ada Lovelace/i;

/**
 * Copies the log, its master key and its key store together to a new folder. Returns the copy's settings and functions
 * that work on the copy.
 */
function copyOf(world: Installation, name: string) {
  const directory = join(world.directory, name);
  mkdirSync(directory);
  for (const file of ["reachlog.sqlite", "reachlog.key", "reachlog.keys.sqlite"]) {
    cpSync(join(world.directory, file), join(directory, file));
  }
  const env = { DATABASE_URL: `sqlite:${join(directory, "reachlog.sqlite")}` };
  // Runs a command in the test's own process, not in the one that is killed.
  const run = (command: MakeCommand, ...args: string[]) => capture(command, args, { env });
  const written = (): number => statSync(join(directory, "reachlog.sqlite-wal"), { throwIfNoEntry: false })?.size ?? 0;
  return { env, run, written };
}

test("after kill -9 during forget, either nothing has happened or the erasure is complete", async () => {
  await using world = await openInstallation();
  const rows = "username,name,basis\nada_builds,Ada Lovelace,opt_in\ngrace_codes,Grace Hopper,opt_in\n";
  await world.execute("recipients", "import", world.file("people.csv", rows));
  let told = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const copy = copyOf(world, `round-${round}`);
    const killed = world.start(["recipients", "forget", "ada_builds", "--yes"], copy.env);
    // The command's first write to the log is the event that erases the recipient, so wait for it.
    while (copy.written() === 0 && killed.exitCode === null) await Bun.sleep(0);
    const until = performance.now() + round;
    while (performance.now() < until);
    killed.kill("SIGKILL");
    await killed.exited;

    const { out: encrypted } = await copy.run(audit, "export", "--encrypted");
    const isForgottenRecorded = encrypted.includes("PersonForgotten");
    if (isForgottenRecorded) told++;
    const { out: opened } = await copy.run(audit, "export");
    expect([round, TRACES.test(opened)]).toEqual([round, !isForgottenRecorded]);
    const code = await copy.run(forget, "ada_builds", "--yes").then((ended) => ended.code, toExitCode);
    expect([round, code]).toEqual([round, isForgottenRecorded ? 1 : 0]);
    const { out: after } = await copy.run(audit, "export");
    expect([round, TRACES.test(after), after.includes("Grace Hopper")]).toEqual([round, false, true]);
    expect(await copy.run(audit, "verify")).toMatchObject({ code: 0 });
    expect((await copy.run(replay)).code).toBe(0);
  }
  // At least one kill must have come after the event was recorded; otherwise the case was not tested.
  expect(told).toBeGreaterThan(0);
});
