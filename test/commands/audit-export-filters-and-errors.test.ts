// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { audit } from "../../src/commands/audit.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const person = (username: string): NewEvent => addedOf({ username });

const CLICK: NewEvent = clickOf({ ip: "203.0.113.7" });

/** Opens a log with these events, a minute apart. Positions 1 and 2 add recipients, 3 is a click, 4 a message. */
async function openLog(): Promise<CommandHarness> {
  const world = await openCommands();
  await world.append(STREAMS.outreach, [person("ada"), person("bob")]);
  await world.append(STREAMS.link("go.example", "x"), [CLICK]);
  await world.append(STREAMS.requests, [{ type: "MessageRequested", data: { text: "hello" } }]);
  return world;
}

test.each<[string[], number[]]>([
  [[], [1, 2, 3, 4]],
  [
    ["--type", "LinkClicked,MessageRequested"],
    [3, 4],
  ],
  [
    ["--stream", "outreach"],
    [1, 2],
  ],
  [["--recipient", "@bob"], [2]],
  [["--link", "go.example/x"], [3]],
  [
    ["--from", timeAt(2), "--to", timeAt(3)],
    [2, 3],
  ],
  [["--encrypted", "--link", "go.example/x"], [3]],
])("audit export %j writes the matching events", async (args, positions) => {
  await using world = await openLog();
  const { code, out } = await world.run(audit, "export", ...args);
  expect(code).toBe(0);
  const lines = out.split("\n").filter((line) => line !== "");
  expect(lines.map((line) => (JSON.parse(line) as { position: number }).position)).toEqual(positions);
  if (args.includes("--encrypted")) expect(out).not.toContain("203.0.113.7");
});

test.each([
  [["--encrypted", "--recipient", "bob"]],
  [["--type", "Nonsense"]],
  [["--run", "1"]],
  [["--from", "yesterday"]],
])("audit export %j is a usage error", async (args) => {
  await using world = await openLog();
  expect(await world.run(audit, "export", ...args).catch((fault: unknown) => fault)).toMatchObject({ kind: "usage" });
});
