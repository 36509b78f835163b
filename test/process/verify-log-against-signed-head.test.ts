// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { rebuildChain, tamper } from "../../events/eventstore-lite/test/tampering.ts";
import { exported, kill, openInstallation, stop, type Installation } from "../harness/process.ts";

const logOf = ({ directory }: Installation): string => join(directory, "reachlog.sqlite");

/** Opens an installation whose service has run and stopped in order, with `people` recipients in the log. */
async function openStopped(people: number): Promise<Installation> {
  const world = await openInstallation();
  const rows = Array.from({ length: people }, (_, index) => `person_${index},opt_in`);
  await world.command("recipients", "import", world.file("people.csv", ["username,basis", ...rows].join("\n")));
  await stop(await world.host());
  return world;
}

/** Returns the output lines of a command that must find faults. */
async function faults(world: Installation, ...args: string[]): Promise<string[]> {
  const { code, out, err } = await world.command(...args);
  expect([code, err]).toEqual([1, ""]);
  return out.trim().split("\n");
}

test("an exported head verifies against a log that grew since", async () => {
  await using world = await openStopped(12);
  const head = join(world.directory, "head");
  expect(await world.command("audit", "head", "--out", head)).toEqual({ code: 0, out: "", err: "" });
  expect(statSync(head).mode & 0o777).toBe(0o600);
  expect(readFileSync(head, "utf8")).toMatch(
    /^(reachlog\/[\w-]{36}\/tree)\n12\n.{44}\nchain .{44}\ntime 20.*Z\n\n— \1 .+\n$/,
  );
  const printed = await world.command("audit", "head");
  expect(printed.out.split("\n").slice(0, 3)).toEqual(readFileSync(head, "utf8").split("\n").slice(0, 3));
  // A second export fails, because nothing is overwritten.
  expect(await world.command("audit", "head", "--out", head)).toMatchObject({ code: 1 });

  await world.command("recipients", "import", world.file("more.csv", "username,basis\nlate,opt_in\n"));
  const running = await world.serve();
  const { code, out } = await world.command("audit", "verify", "--head", head);
  const lines = out.trim().split("\n");
  expect([code, lines.length]).toEqual([0, 3]);
  expect(lines[0]).toStartWith("13 events, the chain is whole; head 13 ");
  expect(lines[1]).toContain(`all 13 events of the checkpoint ${join(world.directory, "reachlog.checkpoint")}`);
  expect(lines[2]).toContain(`all 12 events of the head ${head}`);
  await stop(running);
});

test("an auditor verifies with the public key only", async () => {
  await using world = await openStopped(5);
  const head = join(world.directory, "head");
  await world.command("audit", "head", "--out", head);
  const key = (await world.command("audit", "head", "--public-key")).out.trim();
  const office = join(world.directory, "office");
  mkdirSync(office);
  copyFileSync(logOf(world), join(office, "reachlog.sqlite"));
  world.env["DATABASE_URL"] = `sqlite:${join(office, "reachlog.sqlite")}`;

  expect(await world.command("audit", "verify", "--head", head, "--public-key", key)).toMatchObject({ code: 0 });
  const file = world.file("key.pub", `${key}\n`);
  expect(await world.command("audit", "verify", "--head", head, "--public-key", file)).toMatchObject({ code: 0 });
  expect((await faults(world, "audit", "verify", "--head", head))[1]).toContain("give --public-key");
  const wrong = Buffer.alloc(32, 7).toString("base64");
  expect((await faults(world, "audit", "verify", "--head", head, "--public-key", wrong))[1]).toContain("not signed");
  expect(await world.command("audit", "verify", "--public-key", "nonsense")).toMatchObject({ code: 2 });
  expect((await faults(world, "audit", "verify", "--head", join(office, "none")))[1]).toContain("is not there");
  // Verification created no signing key.
  expect(existsSync(join(office, "reachlog.signing.pem"))).toBe(false);
});

test("a truncated log is found by verify, refused by serve and head, and recorded if accepted", async () => {
  await using world = await openStopped(20);
  const head = join(world.directory, "head");
  await world.command("audit", "head", "--out", head);
  tamper(logOf(world), "DELETE FROM events WHERE position > 17");

  const [chain, beside, kept] = await faults(world, "audit", "verify", "--head", head);
  expect(chain).toStartWith("17 events, the chain is whole");
  for (const line of [beside, kept]) expect(line).toEndWith("knew 20 events: all from position 18 on are lost");
  const told = JSON.parse((await world.command("audit", "verify", "--head", head, "--json")).out);
  expect(told).toMatchObject({ ok: false, checked: 17, fault: null, heads: [{ ok: false }, { ok: false }] });

  expect(await world.command("audit", "head")).toMatchObject({ code: 1, out: "" });
  const refused = await world.command("serve");
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("the log ends at position 17")]);
  expect(refused.err).not.toMatch(/^\s+at /m);

  await stop(await world.host({}, ["--accept-loss"]));
  expect((await exported(world)).at(17)).toMatchObject({
    position: 18,
    type: "LogLossAccepted",
    data: { reason: "lost_tail", expected_position: 20, found_position: 17 },
  });
  await stop(await world.host());
  // The checkpoint that the service signed after the loss covers the remaining events. The head that was kept elsewhere
  // covers all events, so it shows the loss.
  const [, after, elsewhere] = await faults(world, "audit", "verify", "--head", head);
  expect(after).toContain("it holds all 18 events");
  expect(elsewhere).toContain("all from position 19 on are lost");
});

test("a rewritten chain is found by verify and refused by serve", async () => {
  await using world = await openStopped(20);
  const head = join(world.directory, "head");
  await world.command("audit", "head", "--out", head);
  tamper(logOf(world), `UPDATE events SET data = replace(data, 'opt_in', 'dm_first') WHERE position = 7`);
  rebuildChain(logOf(world));

  const [chain, beside, kept] = await faults(world, "audit", "verify", "--head", head);
  expect(chain).toStartWith("20 events, the chain is whole");
  for (const line of [beside, kept]) expect(line).toEndWith("it was altered at position 20 or before");
  const refused = await world.command("serve");
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("another history")]);
});

test("another log of the same length is found by verify and refused by serve", async () => {
  await using world = await openStopped(8);
  await using other = await openStopped(8);
  const head = join(world.directory, "head");
  await world.command("audit", "head", "--out", head);
  rmSync(logOf(world));
  copyFileSync(logOf(other), logOf(world));

  const [chain, beside, kept] = await faults(world, "audit", "verify", "--head", head);
  expect(chain).toStartWith("8 events, the chain is whole");
  for (const line of [beside, kept]) expect(line).toContain("is of another log");
  expect(await world.command("serve")).toMatchObject({ code: 78 });
});

test("a start after kill -9 succeeds, and finds an event altered after the last checkpoint", async () => {
  await using world = await openStopped(3);
  const running = await world.serve();
  await world.command("recipients", "import", world.file("more.csv", "username,basis\nlate,opt_in\nlater,opt_in\n"));
  await kill(running);
  const killed = await world.serve();
  await kill(killed);
  await world.command("recipients", "import", world.file("last.csv", "username,basis\nlast,opt_in\n"));
  tamper(logOf(world), `UPDATE events SET data = replace(data, 'opt_in', 'dm_first') WHERE position = 6`);
  const refused = await world.command("serve");
  expect([refused.code, refused.err]).toEqual([78, expect.stringContaining("broken at position 6")]);
});
