// These tests run parts of the service inside the test process.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import type { ServiceError } from "../../src/platform/service-error.ts";
import { ask, openApp } from "../harness/in-process/app.ts";
import { idAt, openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";
import { showChangeCommand, showHistoryCommand } from "../harness/in-process/operation-commands.ts";

const LINK = STREAMS.link("go.example", "x");
const run_id = "0193a000-0000-7000-8000-0000000000aa";
const REQUEST = { caller: "ann", request_id: "req-1" };

const added = (recipient: { id?: string; username?: string }, name: string): NewEvent => addedOf(recipient, { name });

const dispatch = { source: 15, lane: "clicks", low_watermark: 15 } as const;

/**
 * Appends events about two people who have the same handle one after the other, a message in doubt, and a click that a
 * channel first refused.
 */
async function tell(world: CommandHarness): Promise<void> {
  const bob = { attempt_id: "a1", run_id, recipient: { id: "101", username: "bob" } };
  const outreach: NewEvent[] = [
    added({ username: "bob" }, "Bob"),
    added({ username: "eve" }, "\u001b[2JEve\u202e"),
    { type: "RunStarted", data: { run_id, dry_run: false } },
    { type: "DirectMessageAttempted", data: { ...bob, text: "Hi\nBob", variant: "A", day: "2025-11-20" } },
    { type: "DirectMessageInDoubt", data: { ...bob, detail: "time-out" } },
    { type: "DirectMessageSkipped", data: { run_id, recipient: { username: "eve" }, reason: "protected" } },
    { type: "DirectMessageSent", data: { ...bob, message_id: "m1", settled_by: "lookup" } },
    { type: "RunFinished", data: { run_id, reason: "completed", sent: 1, skipped: 1, failed: 0, in_doubt: 0 } },
  ];
  await world.append(STREAMS.outreach, outreach, { caller: "ann", traceparent: "t0" });
  await world.append(STREAMS.outreach, [
    // The recipient with the id 101 is called robert from now on, and 102 takes over the handle bob.
    added({ id: "101", username: "robert" }, "Robert"),
    added({ id: "102", username: "bob" }, "Bob the second"),
    { type: "RecipientSuppressed", data: { recipient: { username: "bob" }, reason: "opt_out" } },
    { type: "RecipientSuppressed", data: { recipient: { username: "ROBERT" }, reason: "by_hand" } },
  ]);
  await world.append(STREAMS.link("go.example", "other"), [click("other", ["ads"])]);
  await world.append(STREAMS.delivery("ads"), [
    outcomeOf("DispatchSucceeded", { ...dispatch, source: 13, channel: "ads", latency_ms: 1 }),
  ]);
  await world.append(LINK, [click("x", ["ads", "chat"])], REQUEST);
  await world.append(
    STREAMS.answer("ann"),
    [{ type: "RequestAnswered", data: { digest: "d", status: 202, headers: {}, body: "" } }],
    REQUEST,
  );
  await world.append(STREAMS.delivery("ads"), [
    outcomeOf("DispatchFailed", { ...dispatch, channel: "ads", status: 503, detail: "busy", retry_at: timeAt(19) }),
  ]);
  await world.append(STREAMS.delivery("chat"), [
    outcomeOf("DispatchAbandoned", { ...dispatch, channel: "chat", detail: "gone", refused: true }),
  ]);
  await world.append(STREAMS.delivery("ads"), [
    outcomeOf("DispatchSucceeded", { ...dispatch, channel: "ads", attempt: 2, status: 200, latency_ms: 4 }),
  ]);
  await world.append(STREAMS.requests, [
    { type: "DispatchRetryRequested", data: { event_id: idAt(15), source: 15, channel: "chat" } },
  ]);
  await world.append(STREAMS.delivery("chat"), [
    outcomeOf("DispatchSucceeded", { ...dispatch, source: 20, lane: "direct", channel: "chat", latency_ms: 9 }),
  ]);
}

const click = (short_code: string, channels: ("ads" | "chat")[]): NewEvent => clickOf({ short_code, channels });

const LINES: Readonly<Record<number, string>> = {
  1: '@bob was imported from the list with the name "Bob"; basis: they opted in',
  2: '@eve was imported from the list with the name "\\u001b[2JEve\ufffd"; basis: they opted in',
  3: `run ${run_id} started`,
  4: `run ${run_id} is sending to @bob (101), quota day 2025-11-20, variant A: "Hi\\nBob"`,
  5: 'the message to @bob (101) is in doubt: "time-out"',
  6: `run ${run_id} skipped @eve, a protected account`,
  7: "message m1 was sent to @bob (101), as the conversation shows",
  8: `run ${run_id} ended, completed: 1 sent, 1 skipped, 0 failed, 0 in doubt`,
  9: '@robert (101) was imported from the list with the name "Robert"; basis: they opted in',
  10: '@bob (102) was imported from the list with the name "Bob the second"; basis: they opted in',
  11: "@bob was suppressed because they opted out; no run contacts them again",
  12: "@ROBERT was suppressed by an operator; no run contacts them again",
  15: 'a person clicked go.example/x ("click") to "https://shop.example/"; queued for ads, chat',
  16: "a request with an idempotency key was answered with status 202",
  17: `ads: position 15 not delivered (attempt 1, 503): "busy"; next attempt at ${timeAt(19)}`,
  18: 'chat: position 15 became a dead letter, refused for good (attempt 1): "gone"',
  19: "ads: position 15 delivered (attempt 2, 200 in 4 ms)",
  20: `an operator retried the dead letter of position 15 (event ${idAt(15)}); queued for chat`,
  21: "chat: position 20 delivered (attempt 1, 9 ms)",
};

const lines = (...positions: number[]): string =>
  positions.map((position) => `${position} ${timeAt(position)} ${LINES[position]}\n`).join("");

/** Expected refusal if no recipient, link, event or run has the name. */
const UNKNOWN = {
  kind: "not_found",
  out: "The log knows no recipient, link, event or run of that name at that moment.",
};

describe("audit show", () => {
  let world: CommandHarness;
  beforeAll(async () => {
    world = await openCommands();
    await tell(world);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const shown = (...args: string[]) =>
    world
      .run(showHistoryCommand, ...args)
      .catch((refused: ServiceError) => ({ kind: refused.kind, out: refused.message }));

  test.each(["101", "robert", "@Robert", "https://x.com/robert"])(
    "shows for %s the history of one recipient, also under a former handle",
    async (name) => {
      expect(await shown(name)).toEqual({
        code: 0,
        err: "",
        out: `${lines(1, 4, 5, 7, 9, 12)}
@ROBERT (101): suppressed
Opted in; tracking unknown.
(as of position 21, ${timeAt(21)})
`,
      });
    },
  );

  test("finds the recipient who had the handle at the moment", async () => {
    expect((await shown("bob")).out).toStartWith(`${lines(10, 11)}\n`);
    expect((await shown("bob", "--as-of", "9")).out).toStartWith(`${lines(1, 4, 5, 7, 9)}\n`);
  });

  test.each([1, 4, 5, 7, 9, 12])("includes position %d from its own moment on", async (position) => {
    const own = [1, 4, 5, 7, 9, 12];
    const until = lines(...own.filter((at) => at <= position));
    const before = lines(...own.filter((at) => at < position));
    const who = position <= 9 ? "bob" : "101";
    expect((await shown(who, "--as-of", timeAt(position))).out).toStartWith(`${until}\n`);
    const justBefore = new Date(Date.parse(timeAt(position)) - 1).toISOString();
    const earlier = await shown(who, "--as-of", justBefore);
    if (before === "") {
      expect(earlier).toMatchObject(UNKNOWN);
    } else expect(earlier.out).toStartWith(`${before}\n`);
  });

  test("escapes control characters of a name", async () => {
    const { out } = await shown("eve");
    expect(out).toStartWith(lines(2, 6));
    expect(out.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  test("shows the clicks of a link and their outcomes on each channel", async () => {
    expect((await shown("https://go.example/x")).out).toBe(`${lines(15, 17, 18, 19, 20, 21)}
clicks of people 1, of bots 0
ads: delivered 1, failed attempts 1
chat: delivered 1, retried 1
(as of position 21, ${timeAt(21)})
`);
    expect((await shown("go.example/x", "--as-of", "18")).out).toBe(`${lines(15, 17, 18)}
clicks of people 1, of bots 0
ads: pending 1, failed attempts 1
chat: dead 1
(as of position 18, ${timeAt(18)})
`);
    expect((await shown("go.example/x", "--as-of", "20")).out).toContain("\nchat: pending 1, retried 1\n");
    expect(await shown("go.example/x", "--as-of", "14")).toMatchObject(UNKNOWN);
  });

  test.each([15, 16])("shows for the event at %d the request and its dispatches", async (position) => {
    const stream = position === 15 ? LINK : STREAMS.answer("ann");
    expect((await shown(idAt(position))).out).toBe(`${lines(15, 16, 17, 18, 19, 20, 21)}
position ${position} is event ${idAt(position)} of the stream ${stream}, by ann, request req-1
(as of position 21, ${timeAt(21)})
`);
  });

  test("accepts a position instead of an event's id, unless it is a recipient's id", async () => {
    for (const position of [7, 15, 21]) {
      expect(await shown(String(position))).toEqual(await shown(idAt(position)));
    }
    expect((await shown("15", "--as-of", "17")).out).toStartWith(`${lines(15, 16, 17)}\n`);
    await using other = await openCommands();
    await other.append(STREAMS.outreach, [
      added({ username: "one" }, "One"),
      added({ id: "1", username: "two" }, "Two"),
    ]);
    expect((await other.run(showHistoryCommand, "1")).out).toContain("@two");
    expect((await other.run(showHistoryCommand, "1", "--as-of", "1")).out).toContain("position 1 is event");
  });

  test("shows for an outcome its dispatch only, and accepts an id in upper case", async () => {
    expect((await shown(idAt(21).toUpperCase())).out).toStartWith(`${lines(15, 17, 18, 19, 20, 21)}\nposition 21 is `);
  });

  test("shows a message with its run's start and end, and a run completely", async () => {
    expect((await shown(idAt(7))).out).toStartWith(`${lines(3, 4, 5, 7, 8)}\n`);
    // The import was recorded with the same trace as the run, so it is shown with the run.
    expect((await shown(run_id)).out).toStartWith(`${lines(1, 2, 3, 4, 5, 6, 7, 8)}\nposition 3 is `);
  });

  test("prints with --json each event as exported, with its sentence", async () => {
    const { out } = await shown("102", "--json");
    const events = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const stored = (await Array.fromAsync(world.store.read({ from: 10, to: 11 }))) as unknown[];
    expect(events).toEqual(stored.map((event, at) => ({ ...(event as object), words: LINES[10 + at] })));
  });

  test.each([idAt(22), "00000000-0000-0000-0000-000000000000", "unknown", "99", "0"])(
    "refuses %s, which is not in the log",
    async (wanted) => expect(await shown(wanted)).toMatchObject(UNKNOWN),
  );

  test.each(["go.example/", "no handle at all"])("rejects %s, which is no valid name", async (wanted) => {
    expect(await shown(wanted)).toMatchObject({ kind: "usage" });
  });
});

test("audit show counts a retried dispatch in doubt as pending", async () => {
  await using world = await openCommands();
  await world.append(LINK, [click("x", ["chat"])]);
  const about = { source: 1, channel: "chat", lane: "clicks", detail: "time-out" } as const;
  await world.append(STREAMS.delivery("chat"), [outcomeOf("DispatchInDoubt", about)]);
  const retry = { event_id: idAt(1), source: 1, channel: "chat", may_double: true, in_doubt: true } as const;
  await world.append(STREAMS.requests, [{ type: "DispatchRetryRequested", data: retry }]);
  expect((await world.run(showHistoryCommand, "go.example/x")).out).toContain("\nchat: pending 1, retried 1\n");
});

test.each([
  ["arrived", "delivered 1"],
  ["left", "nothing"],
] as const)("audit show does not count a dispatch settled as %s as in doubt", async (as, counts) => {
  await using world = await openCommands();
  await world.append(LINK, [click("x", ["chat"])]);
  const about = { source: 1, channel: "chat", lane: "clicks", detail: "time-out" } as const;
  await world.append(STREAMS.delivery("chat"), [outcomeOf("DispatchInDoubt", about)]);
  const data = { event_id: idAt(1), source: 1, channel: "chat", as, why: "seen" } as const;
  await world.append(STREAMS.requests, [{ type: "DispatchSettled", data }]);
  expect((await world.run(showHistoryCommand, "go.example/x")).out).toContain(`\nchat: ${counts}\n`);
});

test("audit show prints pages from the first or the newest event, and all events with --json", async () => {
  await using world = await openCommands();
  const clicks = Array.from({ length: 41 }, () => click("x", []));
  await world.append(LINK, clicks);
  const show = async (...args: string[]) => (await world.run(showHistoryCommand, "go.example/x", ...args)).out;
  const numbers = (out: string): number[] =>
    out
      .split("\n\n")[0]!
      .split("\n")
      .map((line) => Number(line.split(" ")[0]));
  const all = Array.from({ length: 41 }, (_, at) => at + 1);
  const first = await show();
  expect(numbers(first)).toEqual(all.slice(0, 40));
  expect(first).toContain("\nclicks of people 41, of bots 0\n(41 events; --after 40 lists more; as of position 41, ");
  expect(numbers(await show("--after", "40"))).toEqual([41]);
  const newest = await show("--newest", "--limit", "2");
  expect(numbers(newest)).toEqual([41, 40]);
  expect(newest).toContain("--after 40 lists more");
  expect(numbers(await show("--newest", "--after", "3"))).toEqual([2, 1]);
  const positions = (out: string) =>
    out
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { position: number }).position);
  expect(positions(await show("--json"))).toEqual(all);
  expect(positions(await show("--json", "--newest"))).toEqual(all.toReversed());
});

test("audit show counts an outcome that was recorded twice", async () => {
  await using world = await openCommands();
  await world.append(LINK, [click("x", ["ads"])]);
  const delivered = outcomeOf("DispatchSucceeded", { ...dispatch, source: 1, channel: "ads", latency_ms: 1 });
  await world.append(STREAMS.delivery("ads"), [delivered, delivered]);
  expect((await world.run(showHistoryCommand, "go.example/x")).out).toContain("\nads: delivered 1, recorded twice 1\n");
});

test("audit show finds a discarded letter by its link, by the click and by the discard", async () => {
  await using world = await openCommands();
  const given = { ...dispatch, channel: "chat", detail: "gone", refused: true } as const;
  await world.append(LINK, [click("x", ["chat"]), click("x", ["chat"])]);
  await world.append(STREAMS.delivery("chat"), [
    outcomeOf("DispatchAbandoned", { ...given, source: 1 }),
    outcomeOf("DispatchAbandoned", { ...given, source: 2 }),
  ]);
  const discarded = { event_id: idAt(1), source: 1, channel: "chat", why: "over" } as const;
  await world.append(STREAMS.requests, [{ type: "DispatchDiscarded", data: discarded }]);
  const numbers = (out: string): string[] => out.split("\n\n")[0]?.match(/^\d+/gm) ?? [];
  const ofLink = (await world.run(showHistoryCommand, "go.example/x")).out;
  expect(numbers(ofLink)).toEqual(["1", "2", "3", "4", "5"]);
  expect(ofLink).toContain("\nchat: dead 1, discarded 1\n");
  for (const position of [1, 3, 5]) {
    expect(numbers((await world.run(showHistoryCommand, idAt(position))).out)).toEqual(["1", "3", "5"]);
  }
});

test("audit show finds an event with an id of a different time", async () => {
  await using world = await openCommands();
  await world.append(LINK, [click("x", [])]);
  const id = "ffffffff-ffff-7fff-8fff-ffffffffffff";
  const event = await Array.fromAsync(world.store.read());
  const [{ type, data, meta }] = event as [(typeof event)[number]];
  await world.store.append(LINK, [{ id, type, data, meta } as never]);
  await world.append(LINK, [click("x", [])]);
  expect((await world.run(showHistoryCommand, id)).out).toStartWith("2 ");
});

describe("audit change", () => {
  const show = (world: CommandHarness, ...args: string[]) => world.run(showChangeCommand, ...args);

  test("shows the changes of a projection by one event, in lines and as JSON", async () => {
    await using world = await openCommands();
    await tell(world);
    const { out } = await show(world, "7", "--projection", "stats");
    expect(out).toBe(
      `7 ${timeAt(7)} ${/^7 \S+ (.+)$/m.exec(out)?.[1]}\n\nsent: 0 → 1\n(before it: as of position 6, ${timeAt(6)})\n`,
    );
    expect(out).toContain("message m1 was sent to @bob");
    const json = await show(world, idAt(7), "--projection", "run", "--json");
    expect(JSON.parse(json.out)).toMatchObject({
      event: { position: 7 },
      projection: "run",
      changes: [
        { path: ["current", "sent"], before: 0, after: 1 },
        { path: ["current", "in_doubt"], before: 1, after: 0 },
        { path: ["open", "a1"], before: expect.objectContaining({ in_doubt: true }) },
      ],
    });
    expect((await show(world, "1", "--projection", "stats")).out).toContain("\n\nthe state of stats does not change\n");
  });

  test("shows the first 20 of many changes, and says so", async () => {
    await using world = await openCommands();
    const fields = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`field_${at}`, "x"]));
    await world.append(STREAMS.outreach, [addedOf({ username: "ada" }), addedOf({ username: "ada" }, { fields })]);
    const { out } = await show(world, "2", "--projection", "contacts");
    expect(out.match(/: nothing → "x"$/gm)?.length).toBeGreaterThan(10);
    expect(out).toContain("\n(the first 20 changes)\n");
  });

  test("escapes control characters, and rejects a name that is no event", async () => {
    await using world = await openCommands();
    await tell(world);
    const { out } = await show(world, "2", "--projection", "contacts");
    expect(out).toContain("Eve");
    for (const control of ["\u001b", "\u202e"]) expect(out).not.toContain(control);
    for (const subject of ["@bob", "go.example/x"])
      expect(await show(world, subject, "--projection", "stats").catch((fault: unknown) => fault)).toMatchObject({
        kind: "usage",
        message: "<event> does not fit: The event's id or its position",
      });
  });
});

test("HTTP reads one history at a time, and answers 503 to another request", async () => {
  await using world = await openApp({ tokens: false });
  await world.append("link", clickOf({}));
  await world.projector.until(1);
  const statuses = await Promise.all(
    [1, 2].map(async () => (await ask(world.app, "/api/audit/history?subject=1")).status),
  );
  expect(statuses.toSorted((one, other) => one - other)).toEqual([200, 503]);
  expect((await ask(world.app, "/api/audit/history?subject=1")).status).toBe(200);
});
