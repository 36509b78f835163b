// On the memory harness.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { links } from "../../src/commands/links.ts";
import { openCommands } from "../harness/memory/commands.ts";

test("links are added, imported and listed; refused rows are named, and a repeat changes nothing", async () => {
  await using world = await openCommands(undefined, { LINK_BASE: "https://go.example" });
  const add = ["add", "spring", "https://shop.example/offer"];
  expect(await world.run(links, ...add)).toEqual({ code: 0, err: "", out: "1 added, 0 known before, 0 refused\n" });
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
  expect((await world.run(links, "list")).out).toBe(`link               template  variant  target
go.example/spring  -         -        https://shop.example/offer
go.example/summer  -         -        https://shop.example/s
`);
});

test("a template's link is listed with its name", async () => {
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

test("a file without the two columns, and a service without links, are refused with what helps", async () => {
  await using world = await openCommands(undefined, { LINK_BASE: "https://go.example" });
  const file = join(world.directory, "links.csv");
  writeFileSync(file, "short,long\na,https://shop.example/\n");
  expect(world.run(links, "import", file)).rejects.toThrow("the file needs the columns code and target");
  await using bare = await openCommands();
  expect(bare.run(links, "add", "a", "https://shop.example/")).rejects.toThrow("LINK_BASE");
});
