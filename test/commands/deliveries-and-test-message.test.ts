// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { deliveries } from "../harness/in-process/operation-commands.ts";
import { createEventLog, STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { capture } from "../harness/capture-command.ts";
import { idAt, openCommands, timeAt, type CommandHarness } from "../harness/in-process/commands.ts";
import { outcomeOf } from "../harness/in-process/dispatch-outcome-events.ts";
import { clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const LINK = STREAMS.link("go.example", "x");
const CLICK: NewEvent = clickOf({ channels: ["ads", "chat"] });
const CLICKED = 'a person clicked go.example/x ("click") to "https://shop.example/"; queued for ads, chat';

const about = (source: number, channel: "ads" | "chat") =>
  ({ source, channel, lane: "clicks", low_watermark: source }) as const;

const gaveUp = (source: number, channel: "ads" | "chat", detail = "gone"): NewEvent =>
  outcomeOf("DispatchAbandoned", { ...about(source, channel), detail, refused: true });

const STOPPED: NewEvent = {
  type: "ChannelSuspended",
  data: { channel: "chat", network: "slack", detail: "channel_is_archived", credential: "hash" },
};

const CONFIGURED = {
  META_PIXEL_ID: "1",
  META_ACCESS_TOKEN: "token",
  CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T/B/x",
};

let world: CommandHarness;
/**
 * Opens a log with two clicks. The chat channel has given up on both. The ads channel has delivered the first and
 * failed at the second.
 */
beforeEach(async () => {
  world = await openCommands(undefined, CONFIGURED);
  await world.append(LINK, [CLICK, CLICK]);
  await world.append(STREAMS.delivery("chat"), [gaveUp(1, "chat"), gaveUp(2, "chat")]);
  await world.append(STREAMS.delivery("ads"), [
    outcomeOf("DispatchSucceeded", { ...about(1, "ads"), latency_ms: 5 }),
    outcomeOf("DispatchFailed", { ...about(2, "ads"), status: 503, detail: "busy", retry_at: timeAt(9) }),
  ]);
});
afterEach(() => world[Symbol.asyncDispose]());

const run = (...args: string[]): Promise<{ code: number; out: string; err: string }> => world.run(deliveries, ...args);

async function told(type: string): Promise<unknown[]> {
  const events = await Array.fromAsync(world.store.read({ types: [type] }));
  return events.map(({ stream, data, meta }) => [stream, data, meta.caller]);
}

/** Simulates another command that appends with this idempotency key after the tested command has read the log. */
async function take(key: string): Promise<void> {
  const eventLog = createEventLog(world.store, () => `under ${key}`);
  await eventLog.append(
    STREAMS.requests,
    [{ type: "MessageRequested", data: { text: "" } }],
    { caller: "tests" },
    { key },
  );
}

describe("deliveries list and channels", () => {
  test("show dead letters, newest first, and the counts of each channel", async () => {
    expect(await run("list")).toEqual({
      code: 0,
      err: "",
      out: `event                                 channel  tries  given up                  why
${idAt(2)}  chat     1      ${timeAt(4)}  gone
${idAt(1)}  chat     1      ${timeAt(3)}  gone
(2 dead letters; as of position 6)
`,
    });
    expect((await run("list", "--channel", "ads")).out).not.toContain("chat");
    expect(await run("channels")).toEqual({
      code: 0,
      err: "",
      out: `channel    pending  delivered  skipped  in doubt  dead  state
ads        1        1          0        0         0
chat       0        0          0        0         2
messaging  0        0          0        0         0
webhook    0        0          0        0         0
(as of position 6, ${timeAt(6)})
`,
    });
    expect((await run("channels", "--as-of", "2")).out).toMatch(/\nchat {7}2 {8}0 {10}0 {8}0 {9}0\n/);
  });

  test("list names the option that shows the next page", async () => {
    expect((await run("list", "--limit", "1")).out).toEndWith(
      "\n(2 dead letters; --after 4-2 lists more; as of position 6)\n",
    );
    const { out } = await run("list", "--limit", "1", "--after", "4-2");
    expect(out).toContain(`\n${idAt(1)} `);
    expect(out).toEndWith("\n(2 dead letters; as of position 6)\n");
  });

  test("all reports mark a channel with pending dispatches as not configured", async () => {
    await using gone = await openCommands();
    await gone.append(LINK, [CLICK]);
    expect((await gone.run(deliveries, "channels")).out).toMatch(
      /\nads +1 .*  not configured here: pending dispatches wait until it is\nchat +1 .*  not configured here: /,
    );
    const { out } = await gone.run(deliveries, "channels", "--json");
    expect(JSON.parse(out)).toMatchObject({
      channels: [{ channel: "ads", pending: 1, configured: false }, {}, {}, {}],
    });
    const shown = await gone.run(deliveries, "show", idAt(1));
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.out).toContain("\nchat: waits: the channel is not configured here\n");
    expect((await gone.run(deliveries, "lag", "--channel", "chat")).out).toMatch(/\nchat +1 .* not configured here\n/);
  });

  test("channels shows since when and why a channel is suspended, without its credential", async () => {
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    expect((await run("channels")).out).toContain(
      `  suspended since ${timeAt(7)}: slack refuses the whole channel, channel_is_archived\n`,
    );
    const { out } = await run("channels", "--json");
    expect(JSON.parse(out)).toMatchObject({
      channels: [
        { channel: "ads", pending: 1, suspended: null },
        { channel: "chat", suspended: { since: timeAt(7), network: "slack", detail: "channel_is_archived" } },
        { channel: "messaging" },
        { channel: "webhook" },
      ],
    });
    expect(out).not.toContain("hash");
  });
});

describe("deliveries retry and discard", () => {
  test("discard removes a dead letter for good: a later retry or discard skips it", async () => {
    expect(await run("discard", idAt(1), "--why", " the campaign is over ")).toMatchObject({
      code: 0,
      out: "1 dispatch was discarded.\n",
      err: "",
    });
    const data = { event_id: idAt(1), source: 1, channel: "chat", why: "the campaign is over" };
    expect(await told("DispatchDiscarded")).toEqual([[STREAMS.requests, data, "command-line"]]);
    for (const again of [["retry"], ["discard", "--why", "x"]]) {
      expect(await run(...again, idAt(1))).toMatchObject({
        code: 1,
        out: expect.stringMatching(new RegExp(`^0 .* 1 was skipped: ${idAt(1)} is no dead letter\\.\n$`)) as string,
        err: "",
      });
    }
    expect(await told("DispatchRetryRequested")).toEqual([]);
    expect((await run("channels")).out).toMatch(/\nchat {7}0 {8}0 {10}0 {8}0 {9}1\n/);
    expect((await run("list")).out).not.toContain(idAt(1));
  });

  test("retry --json counts the retried letters and gives a reason for each skipped one", async () => {
    const { code, out } = await run("retry", idAt(1), idAt(9), "--json");
    expect([code, JSON.parse(out)]).toEqual([
      1,
      {
        done: 1,
        left: [{ event_id: idAt(9), channel: null, why: "no_dead_letter" }],
        left_count: 1,
        until_position: 6,
      },
    ]);
    expect(JSON.parse((await run("discard", "--all", "--yes", "--why", "test", "--json")).out)).toEqual({
      done: 1,
      left: [],
      left_count: 0,
      until_position: 7,
    });
  });

  test("retry retries the named dead letters and skips a named event that is none", async () => {
    expect(await run("retry", idAt(5), idAt(2))).toMatchObject({
      code: 1,
      out: `1 dispatch was retried. 1 was skipped: ${idAt(5)} is no dead letter.\n`,
      err: "",
    });
    const data = { event_id: idAt(2), source: 2, channel: "chat" };
    expect(await told("DispatchRetryRequested")).toEqual([[STREAMS.requests, data, "command-line"]]);
    expect((await run("channels")).out).toMatch(/\nchat {7}1 {8}0 {10}0 {8}0 {9}1\n/);
  });

  test("--all applies to every dead letter of a channel, and succeeds if there is none", async () => {
    expect(await run("discard", "--all", "--yes", "--why", "x", "--channel", "ads")).toMatchObject({
      code: 0,
      out: "0 dispatches were discarded.\n",
    });
    expect(await run("discard", "--all", "--yes", "--why", "x", "--channel", "chat")).toMatchObject({
      code: 0,
      out: "2 dispatches were discarded.\n",
    });
    expect(await run("retry", "--all", "--yes")).toMatchObject({ code: 0, out: "0 dispatches were retried.\n" });
  });

  test("dead letters of a suspended channel are skipped by retry, but can be discarded", async () => {
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    expect(await run("retry", "--all", "--yes")).toEqual({
      code: 1,
      out: "0 dispatches were retried. 2 were skipped: chat is suspended: resume it first.\n",
      err: "",
    });
    expect(await told("DispatchRetryRequested")).toEqual([]);
    expect(await run("discard", "--all", "--yes", "--why", "x")).toMatchObject({
      code: 0,
      out: "2 dispatches were discarded.\n",
    });
  });

  describe("dead letters with an attempt that may have arrived", () => {
    const HOUR_MS = 3_600_000;
    const doubtful = (agoMs: number): Promise<void> => {
      const doubtful_since = new Date(Date.now() - agoMs).toISOString();
      const given = { ...about(2, "ads"), attempt: 8, detail: "", refused: false, doubtful_since };
      return world.append(STREAMS.delivery("ads"), [outcomeOf("DispatchAbandoned", given)]);
    };
    const deduplicationWindow = async () =>
      (await told("DispatchRetryRequested")).map((event) => (event as unknown[])[1]);

    test("are retried while Meta still deduplicates them by id", async () => {
      await doubtful(46 * HOUR_MS);
      expect((await run("list", "--channel", "ads")).out).toMatch(/ ads +8 .*; may have arrived\n/);
      expect(await run("retry", idAt(2), "--channel", "ads")).toMatchObject({
        code: 0,
        out: "1 dispatch was retried.\n",
      });
      expect(await deduplicationWindow()).toMatchObject([
        { channel: "ads", doubtful_since: expect.any(String) as string },
      ]);
    });

    test("are skipped after that, unless the operator accepts doubles", async () => {
      await doubtful(47 * HOUR_MS);
      expect(await run("retry", "--all", "--yes")).toEqual({
        code: 1,
        out: "2 dispatches were retried. 1 was skipped: an attempt at ads may have arrived, so a retry may arrive twice.\n",
        err: "",
      });
      expect(await run("retry", "--all", "--yes", "--accept-doubles")).toEqual({
        code: 0,
        out: "1 dispatch was retried.\n",
        err: "",
      });
      expect((await deduplicationWindow()).at(-1)).toEqual({
        event_id: idAt(2),
        source: 2,
        channel: "ads",
        may_double: true,
      });
    });
  });

  test("concurrent retries and discards of the same letters record one decision each", async () => {
    const asked = [
      run("retry", "--all", "--yes"),
      run("discard", "--all", "--yes", "--why", "one"),
      run("discard", idAt(1), idAt(2), "--why", "other"),
      run("retry", idAt(1), idAt(2)),
    ];
    const answers = await Promise.all(asked);
    const decided = answers.map(({ out }) => Number(/^\d+/.exec(out)?.[0]));
    expect(decided.reduce((sum, count) => sum + count, 0)).toBe(2);
    const events = [...(await told("DispatchRetryRequested")), ...(await told("DispatchDiscarded"))];
    expect(events).toHaveLength(2);
    for (const [at, { code, out }] of answers.entries()) {
      const isWhole = decided[at] === 2;
      if (at >= 2) expect(code).toBe(isWhole ? 0 : 1);
      if (!isWhole)
        expect(out).toMatch(/another caller decided at the same moment|is no dead letter|^0 dispatches were \w+\.$/m);
    }
  });

  test("a letter that another caller decided at the same moment is reported as skipped", async () => {
    await take("letter/chat/1");
    const late = "1 was skipped: another caller decided at the same moment.\n";
    const named = await run("discard", idAt(1), "--why", "x");
    expect(named).toEqual({ code: 1, out: `0 dispatches were discarded. ${late}`, err: "" });
    const all = await run("discard", "--all", "--yes", "--why", "x");
    expect(all).toEqual({ code: 0, out: `1 dispatch was discarded. ${late}`, err: "" });
  });

  test("a letter can be discarded after its retry failed", async () => {
    await run("retry", idAt(1));
    await world.append(STREAMS.delivery("chat"), [gaveUp(7, "chat", "")]);
    expect(await run("discard", idAt(1), "--why", "x")).toMatchObject({
      code: 0,
      out: "1 dispatch was discarded.\n",
    });
  });

  test.each([
    ["retry"],
    ["discard", "--why", "x"],
    ["retry", "--all", "some-id"],
    ["retry", "--all"],
    ["discard", "--all", "--why", "x"],
    ["retry", "--error", "5xx", "1"],
    ["retry", "--all", "--yes", "--error", "teapot"],
    ["retry", "--all", "--yes", "--status", "in_doubt", "--accept-doubles"],
    ["retry", "1", "2", "--status", "in_doubt", "--accept-doubles"],
    ["retry", "1", "--status", "in_doubt"],
    ["retry", "1", "--expected", "1"],
    ["discard", "--all"],
    ["settle", "1", "--why", "x"],
    ["settle", "1", "--as", "lost", "--why", "x"],
    ["settle", "1", "--as", "left"],
    ["settle", "--all", "--as", "left", "--why", "x"],
    ["discard", "--all", "--yes", "--why", "  "],
    ["discard", "--all", "--yes", "--why", "x".repeat(501)],
    ["retry", "--all", "--channel", "fax"],
    ["list", "something"],
    ["show"],
    ["show", "no-id"],
    ["resume"],
    ["resume", "fax"],
    ["lag", "something"],
    ["something"],
  ])("%s %s %s %s is a usage error", async (...args) => {
    const given = args.flatMap((arg) => (typeof arg === "string" ? [arg] : []));
    expect(await run(...given).catch((fault: unknown) => fault)).toMatchObject({ kind: "usage" });
    expect(await told("DispatchDiscarded")).toEqual([]);
  });

  describe("on a terminal", () => {
    const runAsked = async (typed: string, args: readonly string[], beforeAnswer = async () => {}) => {
      const questions: string[] = [];
      const ask = async (question: string) => {
        questions.push(question);
        await beforeAnswer();
        return typed;
      };
      const { code, out, err } = await capture(deliveries, args, { env: world.env, ask });
      return { code, out, err, questions };
    };

    test("--all asks with the number of matching letters, and proceeds on yes only", async () => {
      expect(await runAsked("no", ["retry", "--all", "--error", "refused"])).toEqual({
        code: 1,
        out: "",
        err: "nothing was done\n",
        questions: ["Retry 2 dead letters? Type yes: "],
      });
      expect(await told("DispatchRetryRequested")).toEqual([]);
      expect(await runAsked("yes", ["retry", "--all", "--link", "go.example"])).toMatchObject({
        code: 0,
        out: "2 dispatches were retried.\n",
      });
      expect(await runAsked("yes", ["retry", "--all"])).toMatchObject({
        out: "0 dispatches were retried.\n",
        questions: [],
      });
    });

    test("letters that arrive while --all asks are left out", async () => {
      const oneMore = () => world.append(STREAMS.delivery("ads"), [gaveUp(2, "ads")]);
      expect(await runAsked("yes", ["discard", "--all", "--why", "x"], oneMore)).toMatchObject({
        out: "2 dispatches were discarded.\n",
      });
      expect((await run("list")).out).toContain("\n(1 dead letter; ");
    });

    test("nothing is done if another caller decides while --all asks", async () => {
      const oneLess = async () => void (await run("discard", idAt(1), "--why", "x"));
      expect(await runAsked("yes", ["retry", "--all"], oneLess).catch(String)).toContain(
        "Nothing was done: 1 would be decided now, not 2. List them again.",
      );
      expect(await told("DispatchRetryRequested")).toEqual([]);
    });
  });

  test("a dispatch in doubt is retried by hand with --accept-doubles, once", async () => {
    await world.append(LINK, [CLICK]);
    const given = { ...about(7, "ads"), detail: "no answer in time" };
    await world.append(STREAMS.delivery("ads"), [outcomeOf("DispatchInDoubt", given)]);
    const listed = await run("list", "--status", "in_doubt", "--channel", "ads");
    expect(listed.out).toContain(`${idAt(7)}  ads      1      ${timeAt(8)}  no answer in time\n(1 dispatch in doubt; `);
    const retry = () => run("retry", "7", "--status", "in_doubt", "--accept-doubles");
    expect(await retry()).toEqual({ code: 0, out: "1 dispatch was retried.\n", err: "" });
    expect(await retry()).toEqual({
      code: 1,
      out: `0 dispatches were retried. 1 was skipped: ${idAt(7)} is not in doubt.\n`,
      err: "",
    });
    const data = { event_id: idAt(7), source: 7, channel: "ads", may_double: true, in_doubt: true };
    expect(await told("DispatchRetryRequested")).toEqual([[STREAMS.requests, data, "command-line"]]);
    expect((await run("show", "7")).out).toContain("an operator retried the dispatch in doubt of position 7");
  });

  test("a reason of 500 characters is accepted", async () => {
    expect(await run("discard", "--all", "--yes", "--why", "x".repeat(500))).toMatchObject({ code: 0 });
  });
});

describe("deliveries resume", () => {
  test("refuses a channel that is not suspended", async () => {
    expect(await run("resume", "chat").catch(String)).toContain("The chat channel is not suspended.");
    expect(await told("ChannelResumed")).toEqual([]);
  });

  test("resumes a suspended channel once per suspension, however many callers ask", async () => {
    const resumed = [STREAMS.delivery("chat"), { channel: "chat", why: "by_hand" }, "command-line"];
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    // Only one of the two commands resumes the channel. The other one learns that the channel is no longer suspended,
    // in either order.
    const resume = () => run("resume", "chat").catch((refused: unknown) => ({ out: String(refused) }));
    const answers = await Promise.all([resume(), resume()]);
    expect(answers.map(({ out }) => out)).toContain(`chat is resumed. It had been suspended since ${timeAt(7)}.\n`);
    expect(await told("ChannelResumed")).toEqual([resumed]);
    expect(await run("resume", "chat").catch(String)).toContain("is not suspended");
    await world.append(LINK, [CLICK]);
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    expect((await run("resume", "chat")).code).toBe(0);
    expect(await told("ChannelResumed")).toEqual([resumed, resumed]);
  });

  test("shows with --json since when the channel was suspended", async () => {
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    expect(JSON.parse((await run("resume", "chat", "--json")).out)).toEqual({
      channel: "chat",
      suspended_since: timeAt(7),
    });
  });

  test("records nothing if another caller resumed the channel at the same moment", async () => {
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    await take(`resume/chat/${timeAt(7)}`);
    expect(await run("resume", "chat")).toMatchObject({ code: 0, err: "" });
    expect(await told("ChannelResumed")).toEqual([]);
  });
});

describe("deliveries show", () => {
  const lines = (...positions: (readonly [number, string])[]): string =>
    positions.map(([position, words]) => `  ${position} ${timeAt(position)} ${words}\n`).join("");
  const DEAD = 'chat: position 2 became a dead letter, refused for good (attempt 1): "gone"';
  const FAILED = `ads: position 2 not delivered (attempt 1, 503): "busy"; next attempt at ${timeAt(9)}`;

  test("shows the request, and the attempts and the status on each channel", async () => {
    expect(await run("show", idAt(2))).toEqual({
      code: 0,
      err: "",
      out: `2 ${timeAt(2)} ${CLICKED}

ads: waits: attempt 2 of 8 is due at ${timeAt(9)}
${lines([6, FAILED])}
chat: a dead letter: send it with reachlog deliveries retry ${idAt(2)}, or drop it with discard
${lines([4, DEAD])}`,
    });
    expect((await run("show", idAt(1))).out).toContain(`\nads: delivered\n`);
  });

  test("shows with --json each dispatch with its status and events on each channel", async () => {
    const { code, out } = await run("show", idAt(2), "--json");
    const working = { configured: true, suspended: null };
    const channels = [
      {
        channel: "ads",
        status: "waiting",
        attempts: 1,
        retry_at: timeAt(9),
        ...working,
        events: [expect.objectContaining({ position: 6, words: FAILED })],
      },
      {
        channel: "chat",
        status: "dead",
        attempts: null,
        retry_at: null,
        ...working,
        events: [expect.objectContaining({ position: 4, words: DEAD })],
      },
    ];
    const source = expect.objectContaining({ position: 2, type: "LinkClicked", words: CLICKED }) as object;
    expect([code, JSON.parse(out)]).toEqual([0, { dispatches: [{ source, channels }] }]);
  });

  test("accepts any event of the dispatch, and shows one channel on request", async () => {
    const whole = (await run("show", idAt(2))).out;
    for (const position of [4, 6]) expect((await run("show", idAt(position).toUpperCase())).out).toBe(whole);
    const { out } = await run("show", idAt(2), "--channel", "chat");
    expect([out.includes("\nchat: "), out.includes("\nads: ")]).toEqual([true, false]);
  });

  test("shows what operators decided, and the outcomes", async () => {
    await world.append(STREAMS.requests, [
      { type: "DispatchRetryRequested", data: { event_id: idAt(2), source: 2, channel: "chat" } },
    ]);
    expect((await run("show", idAt(2))).out).toContain("\nchat: waits for its first attempt\n");
    await world.append(STREAMS.delivery("chat"), [gaveUp(7, "chat", "")]);
    await world.append(STREAMS.requests, [
      { type: "DispatchDiscarded", data: { event_id: idAt(2), source: 2, channel: "chat", why: "over" } },
    ]);
    expect((await run("show", idAt(9))).out).toEndWith(`
chat: discarded; never sent again
${lines(
  [4, DEAD],
  [7, `an operator retried the dead letter of position 2 (event ${idAt(2)}); queued for chat`],
  [8, "chat: position 7 became a dead letter, refused for good (attempt 1)"],
  [9, `an operator discarded the dead letter of position 2 (event ${idAt(2)}) for chat: "over"`],
)}`);
  });

  test("shows the outcome of each click in a batch, and all clicks for the batch's event", async () => {
    const request = { sources: [[7, 8] as [number, number]], attempt: 1, mode: "batch" as const, latency_ms: 9 };
    await world.append(LINK, [CLICK, CLICK]);
    await world.append(STREAMS.delivery("ads"), [
      {
        type: "DispatchSucceeded",
        data: { channel: "ads", lane: "clicks", low_watermark: 7, requests: [request] },
      },
    ]);
    const took = (position: number): string => `ads: position ${position} delivered (attempt 1, 9 ms, in a batch)`;
    const ofOne = await run("show", idAt(7), "--channel", "ads");
    expect(ofOne.out).toEndWith(`\nads: delivered\n${lines([9, took(7)])}`);
    const { out } = await run("show", idAt(9), "--channel", "ads");
    expect(out).toStartWith(ofOne.out);
    expect(out).toEndWith(`\nads: delivered\n${lines([9, took(8)])}`);
  });

  test("shows that the channel is suspended, and the first of two final outcomes", async () => {
    await world.append(STREAMS.delivery("ads"), [
      {
        type: "ChannelSuspended",
        data: { channel: "ads", network: "meta", detail: "expired\u001b", credential: "hash" },
      },
      outcomeOf("DispatchSkipped", { ...about(1, "ads"), reason: "too_old" }),
    ]);
    expect((await run("show", idAt(2))).out).toContain(
      `\nads: waits: the channel is suspended since ${timeAt(7)}, "expired\\u001b"\n`,
    );
    expect((await run("show", idAt(1))).out).toContain("\nads: delivered\n");
  });

  test.each([
    ["DispatchSkipped" as const, { reason: "too_old" }, "not sent, and never will be"],
    [
      "DispatchInDoubt" as const,
      { detail: "reset" },
      `in doubt, not retried automatically: send it again with reachlog deliveries retry ${idAt(2)} --status in_doubt ` +
        `--accept-doubles, or close it with reachlog deliveries settle ${idAt(2)}`,
    ],
  ])("says what is possible after %s", async (type, more, words) => {
    await world.append(STREAMS.delivery("ads"), [outcomeOf(type, { ...about(2, "ads"), ...more } as never)]);
    expect((await run("show", idAt(2))).out).toContain(`\nads: ${words}\n`);
  });

  test.each([
    ["arrived", "delivered"],
    ["left", "in doubt, and an operator left it so; never sent again"],
  ])("shows a dispatch in doubt that was settled as %s", async (as, words) => {
    await world.append(STREAMS.delivery("ads"), [
      outcomeOf("DispatchInDoubt", { ...about(2, "ads"), detail: "reset" }),
    ]);
    const settled = await run("settle", idAt(2), "--channel", "ads", "--as", as, "--why", "seen");
    expect(settled).toEqual({ code: 0, out: "1 dispatch was settled.\n", err: "" });
    expect((await run("show", idAt(2))).out).toContain(`\nads: ${words}\n`);
    expect(await run("settle", "2", "--as", as, "--why", "seen")).toMatchObject({
      code: 1,
      out: expect.stringContaining("is not in doubt"),
    });
  });

  test.each(["before", "after"])(
    "shows a dispatch in doubt that was lost as in doubt, as its list does: %s",
    async (when) => {
      const doubt = outcomeOf("DispatchInDoubt", { ...about(2, "ads"), detail: "reset" });
      const data = { event_id: idAt(2), source: 2, channel: "ads", detail: "131047" } as const;
      const lost: NewEvent = { type: "DispatchLost", data };
      await world.append(STREAMS.delivery("ads"), when === "before" ? [lost, doubt] : [doubt, lost]);
      const { out } = await run("show", idAt(2));
      expect(out).toContain("\nads: in doubt, not retried automatically");
      expect(out).toContain("the network lost the accepted message of position 2");
      expect((await run("list", "--status", "in_doubt", "--channel", "ads")).out).toContain(idAt(2));
    },
  );

  test("refuses an event that requests no dispatch, and one that does not exist", async () => {
    await world.append(STREAMS.delivery("chat"), [STOPPED]);
    const requestsNothing = "The event requests no dispatch, or none to this channel.";
    expect(await run("show", idAt(7)).catch(String)).toContain(requestsNothing);
    expect(await run("show", idAt(2), "--channel", "messaging").catch(String)).toContain(requestsNothing);
    for (const name of [idAt(99), "99"])
      expect(await run("show", name).catch(String)).toContain(`The log has no event ${name}.`);
  });

  test("accepts a position instead of the event's id", async () => {
    expect(await run("show", "2")).toEqual(await run("show", idAt(2)));
  });
});

test("retry and discard accept positions too", async () => {
  expect(await run("retry", "1", "99")).toEqual({
    code: 1,
    out: "1 dispatch was retried. 1 was skipped: 99 is no dead letter.\n",
    err: "",
  });
  expect(await run("discard", "2", "--why", "x")).toMatchObject({ code: 0, out: "1 dispatch was discarded.\n" });
  expect(await told("DispatchDiscarded")).toMatchObject([
    [STREAMS.requests, { event_id: idAt(2), source: 2 }, "command-line"],
  ]);
});

describe("a named webhook", () => {
  const SUBSCRIBED: NewEvent = {
    type: "WebhookSubscribed",
    data: { channel: "webhook-crm", types: ["LinkClicked"], receiver: "x" },
  };
  const givenUp = outcomeOf("DispatchAbandoned", {
    source: 8,
    channel: "webhook-crm",
    lane: "events",
    low_watermark: 8,
    detail: "500",
    refused: false,
  });
  const suspended: NewEvent = {
    type: "ChannelSuspended",
    data: { channel: "webhook-crm", network: "standard_webhooks", detail: "gone", credential: "hash" },
  };

  test("is accepted as a channel by all commands once the log contains its subscription", async () => {
    const unknown = run("list", "--channel", "webhook-crm").catch(String);
    expect(await unknown).toContain("the log has no channel webhook-crm: ads, chat, messaging, webhook");
    await world.append("webhook-crm", [SUBSCRIBED]);
    await world.append(LINK, [CLICK]);
    await world.append(STREAMS.delivery("webhook-crm"), [givenUp, suspended]);
    expect((await run("list", "--channel", "webhook-crm")).out).toEndWith("\n(1 dead letter; as of position 10)\n");
    const { out } = await run("channels");
    expect(out).toContain("webhook-crm  0        0          0        0         1     suspended since");
    expect((await run("lag")).out).toMatch(/^webhook-crm +0 /m);
    expect((await run("show", idAt(8))).out).toContain("\nwebhook-crm: ");
    expect(await run("retry", "--all", "--yes", "--channel", "webhook-crm")).toMatchObject({
      code: 1,
      out: "0 dispatches were retried. 1 was skipped: webhook-crm is suspended: resume it first.\n",
    });
    expect((await run("resume", "webhook-crm")).out).toStartWith("webhook-crm is resumed");
    expect(await run("retry", "--all", "--yes", "--channel", "webhook-crm")).toMatchObject({
      code: 0,
      out: "1 dispatch was retried.\n",
    });
    const data = { event_id: idAt(8), source: 8, channel: "webhook-crm" };
    expect(await told("DispatchRetryRequested")).toEqual([[STREAMS.requests, data, "command-line"]]);
  });

  test("is not mistaken for other names", async () => {
    for (const name of ["webhooks", "webhook-CRM", "webhook-", "fax"]) {
      expect(await run("lag", "--channel", name).catch(String)).toContain(
        "a channel is one of ads, ads-openai, ads-snap, chat, messaging, webhook, webhook-NAME, not",
      );
    }
  });
});
