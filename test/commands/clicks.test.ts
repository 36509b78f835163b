// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { clicks } from "../harness/in-process/operation-commands.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const message = { attempt_id: "a", run_id: "r", recipient: { id: "1", username: "ada" } };

const INTENT: NewEvent = {
  type: "DirectMessageAttempted",
  data: { ...message, text: "Hi: https://go.example/a", variant: "A", day: "2025-11-20" },
};

const click = (short_code: string, bot = false): NewEvent => clickOf({ short_code, bot });

/**
 * Appends a message with a link, two fetches of the link by X at the same time, clicks on another link, and a person's
 * click on the first link a minute later.
 */
async function tell(world: CommandHarness): Promise<void> {
  let made = 0;
  // Events that are appended by this event log all have the same time.
  const eventLog = createEventLog(world.store, () => `event-${++made}`);
  const at = (stream: string, ...newEvents: NewEvent[]): Promise<unknown> =>
    eventLog.append(stream, newEvents, { caller: "tests" });
  await at(STREAMS.outreach, INTENT);
  await at(STREAMS.link("go.example", "a"), click("a", true), click("a"));
  await at(STREAMS.link("go.example", "b"), click("b"), click("b"));
  await at(STREAMS.link("go.example", "a"), click("a"));
  await world.append(STREAMS.outreach, [
    { type: "DirectMessageSent", data: { ...message, message_id: "m", settled_by: "answer" } },
  ]);
  await world.append(STREAMS.link("go.example", "a"), [click("a")]);
}

let world: CommandHarness;
beforeAll(async () => {
  world = await openCommands();
  await tell(world);
});
afterAll(() => world[Symbol.asyncDispose]());

const [soon, later] = [timeAt(1), timeAt(2)];

test("clicks shows suspected clicks next to those of people, for each link and in total", async () => {
  expect(await world.run(clicks)).toEqual({
    code: 0,
    err: "",
    out: `link          people  suspected  bots  first                     last
go.example/a  3       2          1     ${soon}  ${later}
go.example/b  2       0          0     ${soon}  ${soon}
total         5       2          1
(as of position 8, ${later})
`,
  });
  expect(JSON.parse((await world.run(clicks, "--json")).out)).toMatchObject({
    clicks: 5,
    bots: 1,
    suspected: 2,
    links: [
      { link: "go.example/a", clicks: 3, bots: 1, suspected: 2 },
      { link: "go.example/b", clicks: 2, bots: 0, suspected: 0 },
    ],
    others: { clicks: 0, bots: 0, suspected: 0 },
  });
});

test("clicks LINK finds the suspected clicks of one link", async () => {
  expect((await world.run(clicks, "go.example/a")).out)
    .toBe(`link          people  suspected  bots  first                     last
go.example/a  3       2          1     ${soon}  ${later}
(as of position 8, ${later})
`);
  expect(JSON.parse((await world.run(clicks, "go.example/a", "--json")).out)).toMatchObject({
    clicks: 3,
    suspected: 2,
  });
});

test.each([
  [2, 0, 0],
  [3, 1, 1],
  [5, 1, 1],
  [6, 2, 2],
  [8, 3, 2],
])("as of position %d clicks shows %d clicks of people, %d of them suspected", async (position, people, suspected) => {
  const of = { link: "go.example/a", clicks: people, suspected, bots: 1 };
  const asked = ["--json", "--as-of", String(position)];
  expect(JSON.parse((await world.run(clicks, "go.example/a", ...asked)).out)).toMatchObject({ links: [of] });
  const { links } = JSON.parse((await world.run(clicks, ...asked)).out) as { links: { link: string }[] };
  expect(links.find(({ link }) => link === of.link)).toMatchObject(of);
});

test("clicks LINK counts all clicks of a link that the list has dropped, or counts again since then", async () => {
  await using busy = await openCommands();
  await tell(busy);
  const read = async (...named: string[]) =>
    (JSON.parse((await busy.run(clicks, ...named, "--json")).out) as { links: { link: string }[] }).links;
  const before = await read("go.example/a");
  const more = Array.from({ length: COUNTED_LINKS_MAX }, (_, at) => click(`other${at}`));
  await busy.append(STREAMS.link("go.example", "others"), more);
  expect(await read()).not.toContainEqual(expect.objectContaining({ link: "go.example/a" }));
  expect(await read("go.example/a")).toEqual(before);
  await busy.append(STREAMS.link("go.example", "a"), [click("a")]);
  expect(await read()).toContainEqual(expect.objectContaining({ link: "go.example/a", clicks: 1 }));
  expect(await read("go.example/a")).toMatchObject([{ clicks: 4, suspected: 2, bots: 1 }]);
});

test("clicks recorded in other spellings by an older version count for one link", async () => {
  await using older = await openCommands();
  const at = (domain: string, short_code: string) =>
    older.append(STREAMS.link(domain, short_code), [clickOf({ domain, short_code })]);
  await at("GO.example", "a");
  await at("go.example", "a");
  await at("go.example:443", "/a");
  const [all, ...ofLink] = await Promise.all(
    [[], ["go.example/a"], ["https://GO.example:443/a/?x=1"]].map(async (named) =>
      JSON.parse((await older.run(clicks, ...named, "--json")).out),
    ),
  );
  expect(all).toMatchObject({ clicks: 3, links: [{ link: "go.example/a", clicks: 3 }] });
  for (const one of ofLink) expect(one).toMatchObject({ clicks: 3, links: [{ link: "go.example/a", clicks: 3 }] });
});
