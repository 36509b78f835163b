// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { join } from "node:path";
import urls from "../fixtures/urls.json" with { type: "json" };
import agents from "../fixtures/user-agents.json" with { type: "json" };
import { exported, openInstallation, type Installation } from "../harness/process.ts";
import { onRuntime } from "../harness/bun-deno-or-binary.ts";

const fixture = (name: string): string => join(import.meta.dirname, "../fixtures", name);

async function recipients(world: Installation): Promise<{ username?: string; name?: string; basis: string }[]> {
  const { out } = await world.command("recipients", "list", "--json");
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

test("a spreadsheet's valid rows are imported, and bad ones listed with line and reason", async () => {
  await using world = await openInstallation();
  const imported = await world.command("recipients", "import", fixture("recipients-spreadsheet.csv"));
  expect(imported.code).toBe(1);
  expect(imported.err).toMatch(/^line \d+: .+/m);
  const people = await recipients(world);
  expect(people.length).toBeGreaterThan(3);
  for (const { username } of people) if (username !== undefined) expect(username).toMatch(/^\w{1,15}$/);
  const refused = imported.err.trim().split("\n").length;
  expect(imported.out).toContain(`${people.length} added, 0 updated, ${refused} refused`);
});

test("a CSV with BOM, CRLF, quotes, emoji, empty cells and all forms of handles is imported", async () => {
  await using world = await openInstallation();
  const csv =
    "\uFEFFHandle;Name;Basis;Company\r\n" +
    '@ada_builds;"Lovelace; Ada ""the first"" 🧮";opt-in;Analytical\r\n' +
    "https://x.com/grace_codes?s=20;Grace;DM first;\r\n" +
    "\r\n" +
    "not a handle!;X;opt_in;Y\r\n" +
    "linus_k;Linus;perhaps;Z\r\n" +
    "twitter.com/yuki_dev;Yuki;;Tool\r\n";
  const imported = await world.command("recipients", "import", world.file("people.csv", csv));
  expect(imported.out).toStartWith("3 added, 0 updated, 2 refused\n1 of them without consent: ");
  expect(imported.out).toContain("template fields: company\n");
  expect(imported.err).toMatch(/^line 5: /m);
  expect(imported.err).toMatch(/^line 6: /m);
  expect(await recipients(world)).toMatchObject([
    {
      username: "ada_builds",
      name: 'Lovelace; Ada "the first" 🧮',
      basis: "opt_in",
      fields: { company: "Analytical" },
    },
    { username: "grace_codes", basis: "dm_first", fields: {} },
    { username: "yuki_dev", basis: "none" },
  ]);
  const again = await world.command(
    "recipients",
    "import",
    world.file("again.csv", "username,basis\nYUKI_DEV,opt_in\n"),
  );
  expect(again).toMatchObject({ code: 0, out: "0 added, 1 updated, 0 refused\n" });
});

test("an import reads stdin in the format of --format", async () => {
  await using world = await openInstallation();
  const child = Bun.spawn(onRuntime(["recipients", "import", "-", "--format", "jsonl"]), {
    cwd: world.directory,
    env: world.env,
    stdio: [new Blob(['{"username":"ada_builds","basis":"opt_in"}\n']), "pipe", "pipe"],
  });
  expect([await new Response(child.stdout).text(), await child.exited]).toEqual(["1 added, 0 updated, 0 refused\n", 0]);
});

test("clicks with public lists of user agents and URLs are recorded or refused as expected", async () => {
  await using world = await openInstallation();
  world.sandbox.slack.limit = 100_000;
  world.sandbox.telegram.limit = 100_000;
  const service = await world.host();
  const click = { event: "click", domain: "go.example", short_code: "x", original_url: "https://shop.example/" };
  for (const { ua } of agents) {
    const answer = await service.post("/api/tracking/event", { ...click, user_agent: ua });
    expect([ua, answer.status]).toEqual([ua, 202]);
  }
  const taken = [...urls.valid, ...urls.normalized.map(({ url }) => url)];
  for (const url of taken) {
    const answer = await service.post("/api/tracking/event", { ...click, original_url: url });
    expect([url, answer.status]).toEqual([url, 202]);
  }
  for (const { url } of urls.invalid) {
    const answer = await service.post("/api/tracking/event", { ...click, original_url: url });
    expect([url, answer.status]).toEqual([url, 422]);
  }
  const recorded = (await exported(world)).filter(({ type }) => type === "LinkClicked").map(({ data }) => data);
  // The service treats a blank user agent as a missing one.
  const kept = agents.map(({ ua, bot }) => ({ ua: ua.trim() === "" ? undefined : ua, bot }));
  expect(recorded.slice(0, agents.length).map(({ user_agent, bot }) => ({ ua: user_agent, bot }))).toEqual(kept);
  expect(recorded.slice(agents.length).map(({ original_url }) => original_url)).toEqual(taken);
});
