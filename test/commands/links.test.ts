// These tests run parts of the service inside the test process.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openCommands } from "../harness/in-process/commands.ts";
import { links } from "../harness/in-process/operation-commands.ts";

test("links are added, imported and listed; refused rows are reported, and a repeated import adds nothing", async () => {
  await using world = await openCommands(undefined, { LINK_BASE: "https://go.example" });
  const add = ["add", "spring", "https://shop.example/offer"];
  expect(await world.run(links, ...add)).toEqual({ code: 0, err: "", out: "go.example/spring was added.\n" });
  const file = join(world.directory, "links.csv");
  writeFileSync(
    file,
    "code,target\nspring,https://shop.example/offer\nsummer,https://shop.example/s\nspring,https://else.example\n",
  );
  const imported = { code: 1, out: "1 added, 1 known before, 1 refused\n" };
  const err = "line 4: spring: the code already has another target\n";
  expect(await world.run(links, "import", file)).toEqual({ ...imported, err });
  expect(await world.run(links, "import", file)).toMatchObject({
    code: 1,
    out: "0 added, 2 known before, 1 refused\n",
  });
  expect((await world.run(links, "list")).out).toStartWith(`link               template  variant  target
go.example/spring  -         -        https://shop.example/offer
go.example/summer  -         -        https://shop.example/s
(2 links; as of position 2, `);
});

test("a template's link is listed with the template's name", async () => {
  await using world = await openCommands();
  const template = { template: "t1", template_name: "Autumn invite", variant: "A" };
  const added = { domain: "go.example", code: "x", target: "https://shop.example/", ...template };
  const message = {
    attempt_id: "a",
    run_id: "r",
    recipient: { id: "1", username: "ann" },
    text: "",
    day: "2026-11-20",
  };
  await world.append("outreach", [
    { type: "LinkAdded", data: added },
    { type: "DirectMessageAttempted", data: { ...message, ...template } },
  ]);
  expect((await world.run(links, "list")).out.split("\n")[1]).toMatch(/^go.example\/x {2}Autumn invite {2}A /);
  expect(JSON.parse((await world.run(links, "list", "--json")).out)).toMatchObject(template);
});

test("links are imported from common spreadsheet formats, without the bad rows", async () => {
  await using world = await openCommands(undefined, { LINK_BASE: "https://go.example" });
  const importFile = (name: string, bytes: string | Uint8Array) => {
    writeFileSync(join(world.directory, name), bytes);
    return world.run(links, "import", join(world.directory, name));
  };
  const added = { code: 0, err: "", out: "1 added, 0 known before, 0 refused\n" };
  expect(await importFile("1.csv", "code;target\r\none;https://shop.example/1\r\n")).toEqual(added);
  const utf16 = Buffer.from("\uFEFFcode\ttarget\r\ntwo\thttps://shop.example/2\r\n", "utf16le");
  expect(await importFile("2.csv", utf16)).toEqual(added);
  expect(await importFile("3.csv", "sep=,\r\ncode,target\r\nthree,https://shop.example/3\r\n")).toEqual(added);
  expect(await importFile("4.jsonl", '{"code":"four","target":"https://shop.example/4"}\n')).toEqual(added);
  const mixed = "code,target\nfive,https://shop.example/5,\nsix,https://shop.example/6,more\nno code,x\n";
  expect(await importFile("5.csv", mixed)).toEqual({
    code: 1,
    out: "1 added, 0 known before, 2 refused\n",
    err:
      "line 3: the row has 3 columns, the header has 2: put quotes around a text that holds the separator\n" +
      "line 4: no code: the code needs 1 to 64 letters, digits, _ or -\n",
  });
});

test("a file without the columns, and a configuration without LINK_BASE, are refused with the reason", async () => {
  await using world = await openCommands(undefined, { LINK_BASE: "https://go.example" });
  const file = join(world.directory, "links.csv");
  writeFileSync(file, "short,long\na,https://shop.example/\n");
  expect(world.run(links, "import", file)).rejects.toThrow("the file needs the columns code and target");
  await using bare = await openCommands();
  expect(bare.run(links, "add", "a", "https://shop.example/")).rejects.toThrow("LINK_BASE");
});
