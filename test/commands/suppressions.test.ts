// These tests run parts of the service inside the test process.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { newDatabase } from "eventstore-lite/testing";
import { suppressions } from "../../src/commands/recipients/import-export-suppressions.ts";
import { STREAMS } from "../../src/log/event-log.ts";
import { capture } from "../harness/capture-command.ts";
import { openCommands, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const LIST = "username,reason,suppressed_at\nann,opt_out,2025-03-02\n!,opt_out,\nbob,asked by phone,\nANN,,\n";

let world: CommandHarness;
beforeEach(async () => {
  world = await openCommands(undefined, { REACHLOG_KEY: "01".repeat(32) });
});
afterEach(() => world[Symbol.asyncDispose]());

function file(name: string, text: string): string {
  const path = join(world.directory, name);
  writeFileSync(path, text);
  return path;
}

describe("suppressions import", () => {
  test("reports added, known and refused rows; a repeat adds nothing", async () => {
    await world.append(STREAMS.outreach, [addedOf({ id: "101", username: "ann" })]);
    const list = file("list.csv", LIST);
    const reason =
      "username is neither a handle (1 to 15 letters, digits, underscores) nor the address of an X profile";
    expect(await world.run(suppressions, "import", list)).toEqual({
      code: 1,
      out: "2 added, 1 suppressed before, 1 refused\n",
      err: `line 3: ${reason}\n`,
    });
    const { code, out, err } = await world.run(suppressions, "import", list, "--json");
    expect([code, err, JSON.parse(out)]).toEqual([
      1,
      "",
      { added: 0, repeated: 3, refused: 1, refused_rows: [{ line: 3, value: "!", reason }], noted_cells: 0, notes: [] },
    ]);
    const events = await Array.fromAsync(world.store.read({ types: ["RecipientSuppressed"] }));
    expect(events).toMatchObject([
      { data: { recipient: { username: "ann" }, reason: "opt_out", suppressed_at: "2025-03-02" } },
      { data: { recipient: { username: "bob" }, reason: "list", reason_text: "asked by phone" } },
    ]);
    expect(events[0]?.meta.caller).toBe("command-line");
  });

  test("when interrupted reports its progress; a repeat imports the rest", async () => {
    const list = file("many.csv", `id\n${Array.from({ length: 6_000 }, (_, at) => `${1_000_000 + at}\n`).join("")}`);
    expect(await world.interruptedAt(2, suppressions, "import", list)).toEqual({
      code: 130,
      out: "",
      err: "interrupted: 5000 of 6000 rows were imported, up to line 5001; run the import again for the rest\n",
    });
    expect((await world.run(suppressions, "import", list)).out).toBe("1000 added, 5000 suppressed before, 0 refused\n");
  });

  test("needs --format for an unknown file type", async () => {
    const list = file("list.dat", '{"hash":"none"}\n');
    expect(world.run(suppressions, "import", list)).rejects.toThrow("--format");
    expect(await world.run(suppressions, "import", list, "--format", "jsonl")).toMatchObject({ code: 1 });
  });
});

describe("suppressions export", () => {
  test("writes the list to stdout or a new file, with --hashed as hashes alone", async () => {
    await world.run(suppressions, "import", file("list.csv", LIST));
    const { out } = await world.run(suppressions, "export");
    expect(out).toContain('"","ann","","opt_out","2025-03-02"\r\n"","bob","","asked by phone","');
    const copy = join(world.directory, "copy.csv");
    expect(await world.run(suppressions, "export", "--out", copy)).toEqual({ code: 0, out: "", err: "" });
    expect(readFileSync(copy, "utf8")).toBe(out);
    expect(world.run(suppressions, "export", "--out", copy)).rejects.toThrow("exists already: nothing is overwritten");
    const hashed = (await world.run(suppressions, "export", "--hashed", "--format", "jsonl")).out.trim().split("\n");
    expect(hashed.map((line) => Object.keys(JSON.parse(line)))).toEqual([
      ["hash", "reason", "suppressed_at"],
      ["hash", "reason", "suppressed_at"],
    ]);
    expect(hashed.join()).not.toContain("ann");
  });

  test("neutralizes formulas for spreadsheets, and is imported again without a change", async () => {
    const reasons = ["=1+1", "über;=1+1", "a; @b", "'quoted", "it's; '=x", "a;b"];
    const rows = reasons.map((reason, at) =>
      JSON.stringify({ username: `user_${at}`, reason, suppressed_at: "2025-03-02" }),
    );
    await world.run(suppressions, "import", file("list.jsonl", rows.join("\n")));
    const { out } = await world.run(suppressions, "export");
    expect(out).toStartWith('\ufeff"id","username","hash",');
    expect(out).not.toMatch(/[";]\s*[=+@-]/);
    await using copy = await openCommands();
    await copy.run(suppressions, "import", file("copy.csv", out));
    const read = await Array.fromAsync(copy.store.read({ types: ["RecipientSuppressed"] }));
    expect(read.map(({ data }) => "reason_text" in data && data.reason_text)).toEqual(reasons);
  });

  test("leaves no file when interrupted", async () => {
    await world.run(suppressions, "import", file("list.csv", LIST));
    const out = join(world.directory, "copy.csv");
    const { env } = world;
    const { code, err } = await capture(suppressions, ["export", "--out", out], {
      env,
      signal: AbortSignal.abort(130),
    });
    expect([code, err]).toEqual([130, `interrupted: ${out} was not written\n`]);
  });
});

test("on PostgreSQL a list is imported, exported, and imported again", async () => {
  const DATABASE_URL = (await newDatabase()).replace("postgres@", "postgres:hunter2@");
  const env = { DATABASE_URL, REACHLOG_KEY: world.env["REACHLOG_KEY"] };
  const list = file("list.csv", LIST.replace("!,opt_out,\n", ""));
  expect((await capture(suppressions, ["import", list], { env })).out).toBe(
    "2 added, 1 suppressed before, 0 refused\n",
  );
  const out = join(world.directory, "copy.jsonl");
  expect(await capture(suppressions, ["export", "--format", "jsonl", "--hashed", "--out", out], { env })).toMatchObject(
    {
      code: 0,
    },
  );
  expect((await capture(suppressions, ["import", out], { env })).out).toBe("0 added, 2 suppressed before, 0 refused\n");
});
