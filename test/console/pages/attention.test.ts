// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { STREAMS, type NewEvent } from "../../../src/log/event-log.ts";
import { clickOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { outcomeOf } from "../../harness/in-process/dispatch-outcome-events.ts";
import { LOG_ENGINES } from "../../harness/in-process/temporary-log.ts";
import { openConsole, pageAt, textsAt } from "../open-console.ts";

const OF = { attempt_id: "a1", run_id: "r1", recipient: { id: "1001", username: "priya_codes" } };
const IN_DOUBT: readonly NewEvent[] = [
  { type: "DirectMessageAttempted", data: { ...OF, text: "Hi", variant: "A", day: "2026-11-20" } },
  { type: "DirectMessageInDoubt", data: { ...OF, detail: "X gave no answer within 10 s" } },
];
const DEAD_GRANT: NewEvent = {
  type: "TokenRefreshFailed",
  data: { user_id: "9001", reason: "invalid_grant", dead: true },
};
const FAILED = { source: 1, channel: "chat", lane: "clicks", mode: "single", status: 429 } as const;

/** Opens a console with something of each severity: a dead grant, dead letters, and messages and dispatches in doubt. */
async function openAll() {
  const harness = await openConsole({ env: { X_CLIENT_ID: "app" } });
  await harness.append(STREAMS.requests, clickOf({ channels: ["chat", "ads"] }));
  await harness.append(STREAMS.outreach, ...IN_DOUBT);
  // Items of one severity are listed by their times in milliseconds, so the next ones must be later.
  await Bun.sleep(2);
  const about = { ...FAILED, attempt: 8, detail: "too many requests", refused: false };
  await harness.append(STREAMS.delivery("chat"), outcomeOf("DispatchAbandoned", about));
  const doubt = { source: 1, channel: "ads", lane: "clicks", detail: "no answer in time" } as const;
  await harness.append(STREAMS.delivery("ads"), outcomeOf("DispatchInDoubt", doubt));
  await harness.authorize();
  await harness.append(STREAMS.account, DEAD_GRANT);
  return harness;
}

const itemsAt = async (page: string) => (await textsAt(page, ".needs > li")).map(({ text }) => text);

describe("what needs attention", () => {
  test("is counted on the overview, which lists five items and leads to the others", async () => {
    const harness = await openAll();
    const leads = async () => (await textsAt(await pageAt(harness, "/"), ".attention > .more")).map(({ text }) => text);
    const counted = async () => Number((await textsAt(await pageAt(harness, "/"), "#attention .badge"))[0]?.text);
    expect([await counted(), (await itemsAt(await pageAt(harness, "/"))).length, await leads()]).toEqual([
      4,
      4,
      ["Show all"],
    ]);
    for (const status of [500, 502, 503]) {
      const about = { ...FAILED, status, attempt: 8, detail: "an error", refused: false };
      await harness.append(STREAMS.requests, clickOf({ channels: ["chat"] }));
      const source = (await harness.store.head()).position;
      await harness.append(STREAMS.delivery("chat"), outcomeOf("DispatchAbandoned", { ...about, source }));
    }
    expect([await counted(), (await itemsAt(await pageAt(harness, "/"))).length, await leads()]).toEqual([
      7,
      5,
      ["And 2 more"],
    ]);
  });

  test("says how bad each item is, why, what to do and by which button, the worst first", async () => {
    const harness = await openAll();
    const items = await itemsAt(await pageAt(harness, "/attention"));
    expect(items).toEqual([
      expect.stringMatching(
        /^Critical X no longer accepts our authorization .*"invalid_grant".*Sign in to X as @\w+\. Nothing is lost\.Authorize again$/,
      ),
      expect.stringMatching(
        /^Error Chat did not take 1 dispatch .*All 8 tries failed, the last with "too many requests"\.Retry it once Chat works again\. None arrived, so retrying cannot create duplicates\.Show the 1Retry 1…/,
      ),
      expect.stringMatching(
        /^Warning 1 message may or may not have arrived .*@priya_codes.*"X gave no answer within 10 s"Look it up/,
      ),
      expect.stringMatching(/^Warning 1 dispatch may or may not have reached Ads .*Look for it at Ads, then decide\./),
    ]);
    const page = await pageAt(harness, "/attention");
    const hindrance = {
      text: "X no longer accepts our authorization. Authorize again",
      links: ["/social/auth?back=%2Fattention"],
    };
    expect(await textsAt(page, ".needs form.action > small")).toEqual([hindrance]);
    expect(page).toMatch(/<button class="primary" disabled>(?:(?!<\/button>).)*Look it up/);
    const buttons = await textsAt(page, ".needs > li:nth-child(3) .actions > a");
    expect(buttons.map(({ text }) => text)).toEqual(["Leave it…", "It arrived…"]);
    const questions = await textsAt(await pageAt(harness, "/"), ".needs > li:nth-child(3) dialog h2");
    expect(questions.map(({ text }) => text)).toEqual([
      "Leave the message to @priya_codes as unknown?",
      "Did the message to @priya_codes arrive?",
    ]);
    expect((await itemsAt(await pageAt(harness, "/"))).length).toBe(4);
  });

  test.each(LOG_ENGINES)("warns of a channel that got nothing for five minutes, in a log %s", async (engine) => {
    const requested = Date.parse("2026-03-01T08:00:00.000Z");
    const harness = await openConsole({ engine, channels: ["chat"], logClock: () => requested });
    await harness.append(STREAMS.requests, clickOf({ channels: ["chat", "ads"] }));
    await harness.append(
      STREAMS.delivery("chat"),
      outcomeOf("DispatchFailed", { ...FAILED, detail: "too many requests", retry_at: "2099-01-01T00:00:00.000Z" }),
    );
    const items = async () => itemsAt(await pageAt(harness, "/attention"));
    harness.now = requested + 290_000;
    expect(await items()).toEqual([]);
    harness.now = requested + 310_000;
    expect(await items()).toEqual([
      expect.stringMatching(
        /^Warning Ads does not get 1 waiting dispatch .*No attempt was made since\..*What to set up$/,
      ),
      expect.stringMatching(
        /^Warning Chat does not get 1 waiting dispatch .*failed with "too many requests"\..*Show the channel$/,
      ),
    ]);
    await harness.append(STREAMS.requests, clickOf({ channels: ["chat"] }));
    const delivered = outcomeOf("DispatchSucceeded", { ...FAILED, source: 3, latency_ms: 1 });
    await harness.append(STREAMS.delivery("chat"), delivered);
    expect(await items()).toEqual([expect.stringMatching(/^Warning Ads/)]);
  });

  test("is empty once all is decided, and then says who decided what, and why", async () => {
    const harness = await openAll();
    const [{ id: event_id } = { id: "" }] = await Array.fromAsync(harness.store.read({ to: 1 }));
    const of = { event_id, source: 1 };
    const decide = (stream: string, ...events: NewEvent[]) =>
      harness.eventLog.append(stream, events, { caller: "mara" });
    await decide(STREAMS.outreach, { type: "DirectMessageLeft", data: { ...OF, why: "too old to matter" } });
    await decide(
      STREAMS.requests,
      { type: "DispatchSettled", data: { ...of, channel: "ads", as: "arrived", why: "seen" } },
      { type: "DispatchRetryRequested", data: { ...of, channel: "chat" } },
    );
    await harness.authorize();
    const page = await pageAt(harness, "/attention");
    expect(page).toContain("Nothing needs you.");
    expect(page).toContain("No dead letters, nothing in doubt, and all channels deliver.");
    expect(await itemsAt(page)).toEqual([
      expect.stringMatching(/^Under way Retried 1 dispatch for Chat: 0 arrived, 1 under way/),
      expect.stringMatching(/^Decided 1 dispatch reached Ads.* by mara: “seen”$/),
      expect.stringMatching(/^Decided Left the message to @priya_codes.* as unknown.*: “too old to matter”$/),
    ]);
    const delivered = outcomeOf("DispatchSucceeded", { ...FAILED, source: 10, lane: "direct", latency_ms: 1 });
    await harness.append(STREAMS.delivery("chat"), delivered);
    const [retried] = await itemsAt(await pageAt(harness, "/attention"));
    expect(retried).toMatch(/^Decided Retried 1 dispatch for Chat: 1 arrived, 0 under way/);
  });

  test("never counts a retried dispatch as arrived that failed again and was then discarded", async () => {
    const harness = await openAll();
    const [{ id: event_id } = { id: "" }] = await Array.fromAsync(harness.store.read({ to: 1 }));
    const of = { event_id, source: 1, channel: "chat" } as const;
    const decide = (event: NewEvent) => harness.eventLog.append(STREAMS.requests, [event], { caller: "mara" });
    await decide({ type: "DispatchRetryRequested", data: of });
    const source = (await harness.store.head()).position;
    await harness.append(
      STREAMS.delivery("chat"),
      outcomeOf("DispatchAbandoned", { ...FAILED, source, lane: "direct", attempt: 8, detail: "", refused: false }),
    );
    await decide({ type: "DispatchDiscarded", data: { ...of, why: "of a test" } });
    const items = await itemsAt(await pageAt(harness, "/attention"));
    expect(items.filter((text) => text.includes("Retried"))).toEqual([
      expect.stringMatching(/^Decided Retried 1 dispatch for Chat: 0 arrived, 1 failed again, 0 under way/),
    ]);
  });

  test("is shown for an earlier moment without acts", async () => {
    const harness = await openAll();
    const page = await pageAt(harness, `/attention?as_of=${(await harness.store.head()).position}`);
    expect(await itemsAt(page)).toHaveLength(4);
    expect(page).not.toContain('<form class="action"');
    expect(page).not.toContain("/social/auth");
  });
});

/**
 * Console files that may show commands to run. They address operators at the machine that serves the console, readers
 * who are not signed in yet, or readers without the log who check a downloaded proof.
 */
const OF_MACHINES = ["parts/setup-steps.tsx", "pages/sign-in.tsx", "pages/event.tsx"];

test("no text of the console tells an operator to run a command", () => {
  const folder = join(import.meta.dirname, "../../../src/console");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.(tsx?|js)$/.test(file));
  expect(files.length).toBeGreaterThan(30);
  const told = files.filter((file) => /\breachlog [a-z]+ /.test(readFileSync(join(folder, file), "utf8")));
  expect(told.sort()).toEqual(OF_MACHINES.toSorted());
});
