// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { audit } from "../../src/commands/audit.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { capture, type Captured } from "../harness/capture-command.ts";
import { openCommands } from "../harness/in-process/commands.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const imported = (id: string, username: string): NewEvent => addedOf({ id, username }, { basis: "dm_first" });

test("an export imported into PostgreSQL and back into a file stays the same", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [imported("101", "ann"), imported("102", "zoë 'quoted', =1")]);
  const key = { REACHLOG_KEY: "07".repeat(32) };
  const server = { ...key, DATABASE_URL: await newDatabase() };
  const file = { ...key, DATABASE_URL: `sqlite:${world.directory}/back.sqlite` };
  const run = (env: Record<string, string>, ...args: string[]): Promise<Captured> => capture(audit, args, { env });
  const wanted = await run(world.env, "export", "--encrypted");
  const head = await world.store.head();
  for (const [from, to] of [
    [world.env, server],
    [server, file],
  ] as const) {
    const out = `${world.directory}/${to === server ? "there" : "back"}`;
    await run(from, "export", "--encrypted", "--out", out);
    const { code, out: said } = await run(to, "import", out, "--json");
    expect([code, JSON.parse(said)]).toEqual([0, { position: head.position, hash: head.hash }]);
    expect(await run(to, "export", "--encrypted")).toEqual(wanted);
  }
});
