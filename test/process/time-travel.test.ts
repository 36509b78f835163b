// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { authorize, BEARER, exported, openInstallation, until } from "../harness/process.ts";

const CLICK = {
  event: "click",
  domain: "go.example",
  short_code: "welcome",
  original_url: "https://shop.example/?fbclid=abc",
  user_agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
};

test("commands on the log of a running service show recipients and quota as of a moment", async () => {
  await using world = await openInstallation({ x: { dmLimit: 100 } });
  await world.command(
    "recipients",
    "import",
    world.file("people.csv", "username,name,basis\nada_builds,Ada,opt_in\nben_noconsent,Ben,none\n"),
  );
  const service = await world.host();
  await authorize(service, world.sandbox);
  const key = { ...BEARER, "idempotency-key": "one" };
  const run = (await (await service.post("/social/run", undefined, { ...BEARER, prefer: "wait=300" })).json()) as {
    run_id: string;
  };
  const { id } = (await (await service.post("/api/tracking/event", CLICK, key)).json()) as { id: string };
  const events = await until(
    () => exported(world),
    (all) => all.filter(({ type }) => type === "DispatchSucceeded").length === 3,
  );
  const at = (type: string): number => events.find((event) => event.type === type)?.position ?? 0;
  const head = events.length;

  // Checks the recipient's status at three moments: before the message, at the intent to send, and now.
  const attempted = at("DirectMessageAttempted");
  const { out } = await world.command("audit", "show", "@Ada_Builds");
  const [imported, intent, sent, ...rest] = out.split("\n");
  expect(imported).toMatch(/^1 \S+Z @ada_builds was imported from the list with the name "Ada"; basis: they opted in$/);
  expect(intent).toContain(` run ${run.run_id} is sending to @ada_builds (1700000000000011000), quota day 2`);
  expect(intent).toEndWith(', variant A: "Hi Ada: https://go.example/welcome"');
  expect(sent).toMatch(/Z message \d+ was sent to @ada_builds \(1700000000000011000\)$/);
  expect(rest.join("\n")).toMatch(
    /^\n@ada_builds \(\d+\): sent\nOpted in; tracking unknown\.\n\(as of position \d+, \S+Z\)\n$/,
  );
  const status = async (moment: number): Promise<unknown> => {
    const shown = await world.command("recipients", "show", "ada_builds", "--as-of", String(moment), "--json");
    return (JSON.parse(shown.out) as { recipient: { status: unknown } }).recipient.status;
  };
  expect(await status(attempted - 1)).toBe("open");
  expect(await status(attempted)).toBe("attempted");
  expect(await status(attempted + 1)).toBe("sent");

  // Checks how much of the day's quota was used at three moments: before the message, at the intent to send, and now.
  const used = async (...args: string[]): Promise<unknown> =>
    (JSON.parse((await world.command("quota", "--json", ...args)).out) as { used: unknown }).used;
  expect([
    await used("--as-of", String(attempted - 1)),
    await used("--as-of", String(attempted)),
    await used(),
  ]).toEqual([0, 1, 1]);

  // Finds the click by its link, and by the id that its sender got as the answer.
  expect((await world.command("clicks")).out).toMatch(
    /\ngo.example\/welcome {2}1 {7}0 {10}0 .*\ntotal {15}1 {7}0 {10}0\n/,
  );
  const link = (await world.command("audit", "show", "go.example/welcome")).out.split("\n");
  const clicked = at("LinkClicked");
  expect(link[0]).toEndWith(
    'Z a person clicked go.example/welcome ("click") to "https://shop.example/?fbclid=abc"; ' +
      "queued for ads, chat, messaging",
  );
  const took = link.slice(1, 4).map((line) => / (\w+: position \d+ delivered)/.exec(line)?.[1] ?? line);
  expect(took.toSorted()).toEqual(["ads", "chat", "messaging"].map((name) => `${name}: position ${clicked} delivered`));
  const byId = await world.command("audit", "show", id, "--json");
  const types = byId.out
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { type: string }).type);
  expect(types.sort()).toEqual([...Array(3).fill("DispatchSucceeded"), "LinkClicked"]);

  // Finds the run by the id that its starter got as the answer.
  const whole = (await world.command("audit", "show", run.run_id)).out;
  expect(whole).toContain(` run ${run.run_id} skipped @ben_noconsent, no consent on record\n`);
  expect(whole).toContain(
    ` run ${run.run_id} ended, completed: 1 sent, 1 skipped, 0 failed, 0 in doubt; the network charges at most `,
  );

  // No read wrote an event, and a position in the future is refused.
  expect(await exported(world)).toHaveLength(head);
  expect(await world.command("stats", "--as-of", String(head + 1))).toEqual({
    code: 2,
    out: "",
    err:
      `the log ends at position ${head}: it has no position ${head + 1} (a day is written 2026-11-21)\n` +
      "see reachlog stats --help\n",
  });
});
