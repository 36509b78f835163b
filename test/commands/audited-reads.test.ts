// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import type { DataOf, Recorded } from "../../events/event-types-and-codec.ts";
import { isRunnable, runCommand } from "../../src/commands/shared/command.ts";
import { loadReachlog } from "../../src/commands/shared/root-command.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { projectionOf, type ProjectionName } from "../../projections/all.ts";
import { capture, NO_TERMINAL } from "../harness/capture-command.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { snapshotOf } from "../projector/spoil-snapshots-and-rebuild.ts";

const reachlog = await loadReachlog();

type Read = DataOf<"PersonalDataRead">;

const ADA = { username: "planted_ada" };
const FOUND = { recipient: ADA, records: 1 };

/**
 * Command that shows personal data -> the event that the log must contain after it. FOLDER stands for the test's own
 * folder.
 */
const READS: Readonly<Record<string, Read>> = {
  "recipients show planted_ada": { resource: "recipient", ...FOUND },
  "recipients list": { resource: "recipients", records: 1 },
  "recipients evidence planted_ada --out FOLDER/evidence.json": { resource: "evidence", ...FOUND },
  "outreach preview": { resource: "preview" },
  "outreach preview planted_ada": { resource: "preview", recipient: ADA },
  "outreach watch": { resource: "run" },
  "results --by day --csv": { resource: "results", records: 0 },
  "audit show @planted_ada": { resource: "recipient", ...FOUND },
  "audit show 1": { resource: "event", ...FOUND },
  "audit show go.example/spring": { resource: "link", records: 1 },
  "audit change 1 --projection contacts": { resource: "event", ...FOUND },
  "audit tail --from 1": { resource: "stream" },
  "audit prove 1 --plain --out FOLDER/proof": { resource: "event", ...FOUND },
  "audit export": { resource: "export" },
  "audit export --recipient planted_ada --type RecipientAdded --out FOLDER/export.jsonl": {
    resource: "export",
    filters: ["recipient", "type"],
    recipient: ADA,
  },
  "suppressions export": { resource: "suppressions" },
  "deliveries show 2": { resource: "deliveries", records: 1 },
};

/**
 * All other commands. They show no personal data, or only messages in doubt (`outreach reconcile`). Changes that they
 * make are recorded by their own events.
 */
const OTHERS = [
  ...["list", "show", "count", "create", "change", "end"].map((name) => `campaigns ${name}`),
  ..."init clock-corrected serve demo sandbox doctor ready settings stats quota runs report clicks replay backup restore restored migrate".split(
    " ",
  ),
  ..."upgrade-check mcp completion".split(" "),
  ...["import", "consent", "suppress", "retry", "release", "forget"].map((name) => `recipients ${name}`),
  "suppressions import",
  ...["run", "stop", "reconcile", "settle"].map((name) => `outreach ${name}`),
  ...["add", "list", "import"].map((name) => `links ${name}`),
  ...["verify", "head", "check", "consistency", "import"].map((name) => `audit ${name}`),
  ...["list", "channels", "lag", "retry", "discard", "settle", "decide", "resume", "test"].map(
    (name) => `deliveries ${name}`,
  ),
  "clicks forget",
  "archive",
  "witness serve",
  "account show",
  "account unlink",
  "key show",
  "key rotate",
  ...["new", "list", "remove"].map((name) => `token ${name}`),
];

function leavesOf(command: CommandUnknownOpts, path: readonly string[] = []): readonly string[] {
  const own = isRunnable(command) ? [path.join(" ")] : [];
  return [...own, ...command.commands.flatMap((one) => leavesOf(one, [...path, one.name()]))];
}

async function openWorld(more: Record<string, string> = {}): Promise<CommandHarness> {
  const world = await openCommands();
  Object.assign(world.env, { MESSAGE_TEMPLATE: "Hi {{username}}", ...more });
  const data = { recipient: ADA, basis: "opt_in", fields: {}, source: "list" } as const;
  await world.append(STREAMS.outreach, [{ type: "RecipientAdded", data } satisfies NewEvent]);
  await world.append(STREAMS.link("go.example", "spring"), [clickOf({ short_code: "spring", channels: ["chat"] })]);
  return world;
}

async function readsIn({ store }: CommandHarness): Promise<readonly Recorded[]> {
  return Array.fromAsync(store.read({ types: ["PersonalDataRead"] }));
}

/** Returns the signal that ends the command. For a command that follows the log, it ends the command immediately. */
function signalFor(command: string): AbortSignal {
  return /^(?:audit tail|outreach watch)/.test(command) ? AbortSignal.abort(0) : new AbortController().signal;
}

const run = ({ env, directory }: CommandHarness, command: string, caller?: string) =>
  capture(reachlog, command.replace("FOLDER", directory).split(" "), {
    env,
    signal: signalFor(command),
    ...(caller === undefined ? {} : { caller }),
  });

test("the two lists here, commands that show personal data and the others, name every command", () => {
  const leaves = leavesOf(reachlog(NO_TERMINAL));
  const reading = leaves.filter((leaf) => Object.keys(READS).some((command) => `${command} `.startsWith(`${leaf} `)));
  expect([...reading, ...OTHERS].toSorted()).toEqual(leaves.toSorted());
});

describe.each(Object.keys(READS))("reachlog %s", (command) => {
  test("records one read by the command line, if AUDIT_READS is on", async () => {
    for (const [setting, wanted] of [["on", [[READS[command], "command-line"]]] as const, ["off", []] as const]) {
      await using world = await openWorld({ AUDIT_READS: setting });
      expect(await run(world, command)).toMatchObject({ code: 0 });
      expect((await readsIn(world)).map(({ data, meta }) => [data, meta.caller] as const)).toEqual(wanted as never);
    }
  });
});

test("an encrypted export and a bare proof record no read, because they decrypt nothing", async () => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  await run(world, "audit export --encrypted");
  await run(world, "audit prove 1 --out FOLDER/proof");
  expect(await readsIn(world)).toEqual([]);
});

test("a read that finds no recipient is not recorded", async () => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  for (const command of ["recipients show a_stranger", "audit show @a_stranger", "outreach preview a_stranger"]) {
    const { code } = await run(world, command).catch(() => ({ code: 1 }));
    expect(code).toBe(1);
  }
  expect(await readsIn(world)).toEqual([]);
});

test.each(Object.keys(READS))("reachlog %s shows and writes nothing before the read is on disk", async (command) => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  using log = new DatabaseSync(world.env["DATABASE_URL"]!.replace("sqlite:", ""));
  const stored = () => log.prepare("select max(position) as newest from events").get()!["newest"];
  const args = command.replace("FOLDER", world.directory).split(" ");
  const isWritten = () => args.includes("--out") && existsSync(args.at(-1)!);
  const shown: unknown[] = [];
  let isWrittenBefore = true;
  const env = new Proxy(world.env, {
    get(target, name) {
      // The command reads this setting right before it records the read, so the test looks here if anything was written
      // earlier.
      if (name === "AUDIT_READS") isWrittenBefore = isWritten();
      return Reflect.get(target, name);
    },
  });
  const out = () => void shown.push(stored());
  await runCommand(reachlog, args, { ...NO_TERMINAL, env, signal: signalFor(command), out });
  const positions = (await readsIn(world)).map(({ position }) => position);
  expect([isWrittenBefore, positions.length]).toEqual([false, 1]);
  expect(shown.filter((newest) => newest !== positions[0])).toEqual([]);
});

test("a replay records a read only if the differences that it shows are about recipients", async () => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  const { position } = await world.store.head();
  const spoil = (name: ProjectionName) =>
    world.store.snapshots.save(name, snapshotOf(name, position, projectionOf(name).initial()));
  await spoil("clicks");
  expect((await run(world, "replay")).out).toContain("links.go.example/spring: stored nothing");
  expect(await readsIn(world)).toEqual([]);
  await spoil("contacts");
  expect((await run(world, "replay --projection contacts")).out).toContain("planted_ada");
  const wanted = { resource: "recipients", filters: ["projection"] };
  expect((await readsIn(world)).map(({ data, meta }) => [data, meta.caller])).toEqual([
    [wanted, "command-line"],
  ] as never);
});

test("recording consent also records a read, even if the consent is unchanged", async () => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  for (const _time of [1, 2]) await run(world, "recipients consent planted_ada --tracking denied");
  expect((await readsIn(world)).map(({ data }) => data)).toEqual([
    { resource: "recipient", recipient: ADA },
    { resource: "recipient", recipient: ADA },
  ]);
});

test("a read by an assistant is recorded with the caller `mcp`", async () => {
  await using world = await openWorld({ AUDIT_READS: "on" });
  await run(world, "recipients list", "mcp");
  expect((await readsIn(world)).map(({ meta }) => meta.caller)).toEqual(["mcp"]);
});
