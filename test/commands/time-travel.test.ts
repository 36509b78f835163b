// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { COUNTED_LINKS_MAX } from "../../projections/drop-oldest-links.ts";
import { makeEvent, type Event } from "../../events/event-types-and-codec.ts";
import { makeId } from "../../src/platform/clock-ids-and-timers.ts";
import { clicks, contact, contacts } from "../harness/in-process/operation-commands.ts";
import type { MakeCommand } from "../../src/commands/shared/command.ts";
import { quota } from "../harness/in-process/operation-commands.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { stats } from "../harness/in-process/operation-commands.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { dayIn } from "../../src/outreach/quota-day.ts";
import { openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const person = (username: string): NewEvent => addedOf({ username });

function message(attempt_id: string, id: string, day: string, frees_quota?: boolean): NewEvent[] {
  const of = { attempt_id, run_id: "r", recipient: { id, username: `u${id}` } };
  const attempted: NewEvent = { type: "DirectMessageAttempted", data: { ...of, text: "Hi", variant: "A", day } };
  if (frees_quota === undefined) {
    return [attempted, { type: "DirectMessageSent", data: { ...of, message_id: "m", settled_by: "answer" } }];
  }
  const failed = { ...of, reason: "rejected", detail: "", frees_quota, retry: false } as const;
  return [attempted, { type: "DirectMessageFailed", data: failed }];
}

const click = (short_code: string, bot = false): NewEvent => clickOf({ short_code, bot });

async function refusal(world: CommandHarness, command: MakeCommand, ...args: string[]): Promise<string> {
  try {
    await world.run(command, ...args);
  } catch (fault) {
    if (fault instanceof ServiceError && fault.kind === "usage") return fault.message;
    throw fault;
  }
  throw new Error("it was accepted");
}

test("stats accepts a position or a time, also before the first event or in the future", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [...message("a", "1", "2025-11-20"), ...message("b", "2", "2025-11-20", true)]);
  const shown = async (...args: string[]): Promise<string> => (await world.run(stats, ...args)).out;
  const now = `sent 1, skipped 0, failed 1 (as of position 4, ${timeAt(4)})\n`;
  expect(await shown()).toBe(now);
  expect(await shown("--as-of", "2999-01-01")).toBe(now);
  expect(await shown("--as-of", "4")).toBe(now);
  expect(await shown("--as-of", timeAt(4))).toBe(now);
  const before = `sent 1, skipped 0, failed 0 (as of position 3, ${timeAt(3)})\n`;
  expect(await shown("--as-of", new Date(Date.parse(timeAt(4)) - 1).toISOString())).toBe(before);
  expect(await shown("--as-of", "1")).toBe(`sent 0, skipped 0, failed 0 (as of position 1, ${timeAt(1)})\n`);
  const nothing = "sent 0, skipped 0, failed 0 (as of position 0, before the first event)\n";
  expect(await shown("--as-of", "0")).toBe(nothing);
  expect(await shown("--as-of", "2025-11-19")).toBe(nothing);
  expect(await shown("--as-of", "0", "--json")).toBe(
    '{"sent":0,"skipped":0,"failed":0,"as_of":{"position":0,"time":null}}\n',
  );
});

test("each command refuses a position past the end, and an invalid moment", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [person("ann")]);
  for (const command of [stats, quota, contacts, clicks]) {
    expect(await refusal(world, command, "--as-of", "2")).toBe(
      "the log ends at position 1: it has no position 2 (a day is written 2026-11-21)",
    );
    expect(await refusal(world, command, "--as-of", "soon")).toContain('not "soon"');
    expect((await world.run(command, "--as-of", "1")).code).toBe(0);
  }
  expect(await refusal(world, clicks, "go.example/x", "--as-of", "2")).toContain("ends at position 1");
});

test("quota shows the day of the moment in the time zone, with today's limit", async () => {
  await using world = await openCommands();
  // The events are recorded from 10:01 UTC on 20 November, when it is already 21 November in Kiritimati (UTC+14).
  Object.assign(world.env, { QUOTA_TIMEZONE: "Pacific/Kiritimati", DAILY_LIMIT: "2" });
  const day = "2025-11-21";
  await world.append(STREAMS.outreach, [
    ...message("a", "1", "2025-11-20"),
    ...message("b", "2", day, true),
    ...message("c", "3", day, false),
    ...message("d", "4", day),
    ...message("e", "5", day),
  ]);
  const shown = async (...args: string[]): Promise<string> => (await world.run(quota, ...args)).out;
  const told = (used: number, left: number, position: number): string =>
    `${day} (Pacific/Kiritimati): ${used} of 2 used, ${left} left, ends at 2025-11-21T10:00:00.000Z ` +
    `(as of position ${position}, ${timeAt(position)})\nthe limit is the one configured now\n`;
  expect(await shown("--as-of", "2")).toBe(told(0, 2, 2));
  expect(await shown("--as-of", "3")).toBe(told(1, 1, 3));
  expect(await shown("--as-of", timeAt(4))).toBe(told(0, 2, 4));
  expect(await shown("--as-of", "7")).toBe(told(2, 0, 7));
  expect(await shown("--as-of", "10")).toBe(told(3, 0, 10));
  // A date alone selects that day in the time zone. The command shows the quota of that day even if the log's last
  // event is of another day.
  expect(await shown("--as-of", day)).toBe(told(3, 0, 10));
  expect(JSON.parse(await shown("--as-of", "2025-11-22", "--json"))).toEqual({
    day: "2025-11-22",
    timezone: "Pacific/Kiritimati",
    counted: "day",
    used: 0,
    limit: 2,
    remaining: 2,
    resets_at: "2025-11-22T10:00:00.000Z",
    as_of: { position: 10, time: timeAt(10) },
  });
  expect(await shown("--as-of", "0")).toBe(
    "before the first day: 0 of 2 used, 2 left (as of position 0, before the first event)\n" +
      "the limit is the one configured now\n",
  );
});

test("quota counts in the time zone of then, and over 24 hours after it changed", async () => {
  await using world = await openCommands();
  Object.assign(world.env, { QUOTA_TIMEZONE: "Pacific/Kiritimati", DAILY_LIMIT: "2" });
  const sentIn = (timezone: string, attempt_id: string, day: string): NewEvent[] =>
    message(attempt_id, attempt_id, day).map((newEvent) =>
      newEvent.type === "DirectMessageAttempted" ? { ...newEvent, data: { ...newEvent.data, timezone } } : newEvent,
    );
  // The events are recorded a minute apart, from 10:01 UTC on 20 November.
  await world.append(STREAMS.outreach, [
    ...sentIn("UTC", "1", "2025-11-20"),
    ...sentIn("UTC", "2", "2025-11-20"),
    ...sentIn("Pacific/Kiritimati", "3", "2025-11-21"),
  ]);
  const shown = async (...args: string[]) =>
    JSON.parse((await world.run(quota, "--json", ...args)).out) as Record<string, unknown>;
  const inUtc = { day: "2025-11-20", timezone: "UTC", counted: "day", resets_at: "2025-11-21T00:00:00.000Z" };
  expect(await shown("--as-of", "4")).toMatchObject({ ...inUtc, used: 2, remaining: 0 });
  const changed = {
    day: "2025-11-21",
    timezone: "Pacific/Kiritimati",
    counted: "last_24_hours",
    used: 3,
    remaining: 0,
  };
  const secondBack = new Date(Date.parse(timeAt(4)) + 24 * 3_600_000).toISOString();
  expect(await shown("--as-of", "6")).toMatchObject({ ...changed, resets_at: secondBack });
  const { out } = await world.run(quota, "--as-of", "6");
  expect(out).toStartWith(
    "the 24 hours before, because the time zone was changed to Pacific/Kiritimati: 3 of 2 used, 0 left, " +
      `more at ${secondBack} (`,
  );
  // By the machine's clock, the change of the time zone is long ago. So the quota counts the messages of the calendar
  // day.
  expect(await shown()).toMatchObject({ timezone: "Pacific/Kiritimati", counted: "day", used: 0 });
});

test("quota shows today without a moment, or for a future one", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, message("a", "1", "2025-11-20"));
  const today = dayIn("UTC", Date.now());
  const { out } = await world.run(quota);
  expect(out).toStartWith(`${today} (UTC): 0 of 100 used, `);
  expect(out).not.toContain("the limit is");
  // No message can have used the quota of a day far in the future, so the command shows today.
  expect((await world.run(quota, "--as-of", "2999-01-01")).out).toStartWith(`${today} (UTC): `);
});

test("quota takes the newest event's day as today if the clock was set back", async () => {
  await using world = await openCommands(Date.parse("2199-05-01T12:00:00Z"));
  await world.append(STREAMS.outreach, message("a", "1", "2199-05-01"));
  for (const args of [[], ["--as-of", "2999-01-01"]]) {
    expect((await world.run(quota, ...args)).out).toStartWith("2199-05-01 (UTC): 1 of 100 used, 99 left, ");
  }
});

test("recipients list and show have the status as of the moment", async () => {
  await using world = await openCommands();
  await world.append(STREAMS.outreach, [
    person("ann"),
    person("u42"),
    ...message("a", "42", "2025-11-20", false),
    { type: "RecipientRetryAllowed", data: { recipient: { id: "42" } } },
    { type: "RecipientSuppressed", data: { recipient: { username: "ANN" }, reason: "by_hand" } },
  ]);
  const status = async (at: number): Promise<string> => {
    const { out } = await world.run(contact, "@u42", "--as-of", String(at), "--json");
    return (JSON.parse(out) as { recipient: { status: string } }).recipient.status;
  };
  expect(await Promise.all([2, 3, 4, 5, 6].map(status))).toEqual(["open", "attempted", "failed", "open", "open"]);
  expect((await world.run(contacts, "--as-of", "4")).out).toBe(
    "username  id  basis   tracking  status  skipped for\n" +
      "ann           opt_in  unknown   open\n" +
      "u42       42  opt_in  unknown   failed\n" +
      `(2 recipients; as of position 4, ${timeAt(4)})\n`,
  );
  expect((await world.run(contact, "42", "--as-of", timeAt(3))).out).toContain(
    "u42       42  opt_in  unknown   attempted\n",
  );
  expect(world.run(contact, "u42", "--as-of", "1")).rejects.toThrow("No recipient has that name");
});

test("clicks counts people and bots for each link, the most clicked first", async () => {
  await using world = await openCommands();
  for (const newEvent of [
    click("a"),
    click("b"),
    click("b", true),
    click("b"),
    click("\u202ec"),
    click("a", true),
    click("a", true),
  ]) {
    const { short_code } = (newEvent as Extract<NewEvent, { type: "LinkClicked" }>).data;
    await world.append(STREAMS.link("go.example", short_code), [newEvent]);
  }
  const head = "link           people  suspected  bots  first                     last\n";
  const [one, two, four, five, seven] = [1, 2, 4, 5, 7].map(timeAt);
  expect((await world.run(clicks)).out).toBe(
    `${head}go.example/b   2       0          1     ${two}  ${four}
go.example/a   1       0          2     ${one}  ${seven}
go.example/\ufffdc  1       0          0     ${five}  ${five}
total          4       0          3
(as of position 7, ${seven})
`,
  );
  const { links } = JSON.parse((await world.run(clicks, "--json", "--as-of", "5")).out) as {
    links: { link: string }[];
  };
  expect(links.map(({ link: name }) => name)).toEqual(["go.example/b", "go.example/\u202ec", "go.example/a"]);
  const link = async (name: string, at: number): Promise<unknown> => {
    const { out } = await world.run(clicks, name, "--as-of", String(at), "--json");
    const { links: ofLink, others, as_of } = JSON.parse(out) as Record<string, unknown>;
    expect(others).toEqual({ clicks: 0, bots: 0, suspected: 0 });
    return { links: ofLink, as_of };
  };
  const of = { link: "go.example/b", first: two, clicks: 1, suspected: 0 };
  expect(await link("go.example/b", 2)).toEqual({
    links: [{ ...of, bots: 0, last: two }],
    as_of: { position: 2, time: two },
  });
  const three = timeAt(3);
  expect(await link("https://go.example/b", 3)).toEqual({
    links: [{ ...of, bots: 1, last: three }],
    as_of: { position: 3, time: three },
  });
  const unknown = await world.run(clicks, "go.example/b", "--as-of", "1").catch(String);
  expect(unknown).toContain("No click of that link is in the log.");
  expect((await world.run(clicks, "--as-of", "1", "--json")).out).toBe(
    `{"clicks":1,"bots":0,"suspected":0,"links":[{"link":"go.example/a","clicks":1,"bots":0,"suspected":0,` +
      `"first":"${one}","last":"${one}"}],"others":{"clicks":0,"bots":0,"suspected":0},"as_of":{"position":1,"time":"${one}"}}\n`,
  );
});

test("clicks beyond the limit of links are summed up, and counted for a named link", async () => {
  await using world = await openCommands();
  const eventLog = createEventLog(world.store, makeId);
  const post = (code: string): Promise<unknown> =>
    eventLog.append(STREAMS.link("go.example", code), [click(code)], { caller: "tests" });
  await post("first");
  await Promise.all(Array.from({ length: COUNTED_LINKS_MAX }, (_, at) => post(`c${at}`)));
  const { out } = await world.run(clicks);
  expect(out).not.toContain("go.example/first");
  expect(out).toMatch(/\n\(links no longer told apart\) {2}1000 {4}0 {10}0\ntotal {25}10001 {3}0 {10}0\n/);
  expect((await world.run(clicks, "go.example/first")).out).toMatch(/\ngo.example\/first {2}1 {7}0 /);
});

test("a fold to a moment stores a snapshot, and a repeat gives the same answer", async () => {
  await using world = await openCommands();
  const skipped = (): Event[] =>
    Array.from({ length: 10_000 }, () => {
      const data = { run_id: "r", recipient: { id: "1" }, reason: "self" } as const;
      return makeEvent("DirectMessageSkipped", makeId(), data, {});
    });
  for (let done = 0; done < 3; done++) await world.store.append(STREAMS.outreach, skipped());
  const shown = async (): Promise<string> => (await world.run(stats, "--as-of", "25000")).out;
  const first = await shown();
  expect(first).toStartWith("sent 0, skipped 25000, failed 0");
  const kept = await world.store.snapshots.list("past/stats/");
  expect(kept.map(({ name }) => name)).toEqual(["past/stats/20000/30000"]);
  expect(await shown()).toBe(first);
});
