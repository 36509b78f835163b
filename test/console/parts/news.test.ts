// On the memory harness.
import { expect, test } from "bun:test";
import { h } from "preact";
import { renderToString } from "preact-render-to-string";
import type { Recorded } from "../../../events/catalog.ts";
import { Lines, toLines } from "../../../src/console/parts/news.tsx";
import type { View } from "../../../src/console/page-context.ts";
import { runs } from "../../../projections/runs.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { outcomeOf } from "../../harness/memory/outcomes.ts";
import { click, openConsole, pageAt, person, textsAt } from "../pages.ts";

const MINUTE_MS = 60_000;

const DISPATCH = { source: 1, lane: "clicks", low_watermark: 1, channel: "ads" } as const;
const delivered = (): NewEvent => outcomeOf("DispatchSucceeded", { ...DISPATCH, latency_ms: 3 });
const refused = (): NewEvent =>
  outcomeOf("DispatchFailed", { ...DISPATCH, detail: "busy", retry_at: "2026-11-20T10:00:00.000Z" });

const RUN = "0193a000-0000-7000-8000-0000000000aa";
const ADA = { id: "1001", username: "ada" };
const MESSAGE = { attempt_id: "a1", run_id: RUN, recipient: ADA };
const counts = { sent: 1, skipped: 0, failed: 0, in_doubt: 0 };

/** Events that an operator must not miss, and decisions. */
const NEVER_GROUPED: readonly NewEvent[] = [
  {
    type: "DirectMessageFailed",
    data: { ...MESSAGE, reason: "rejected", detail: "", frees_quota: true, retry: false },
  },
  { type: "DirectMessageInDoubt", data: { ...MESSAGE, detail: "" } },
  { type: "DirectMessageReceived", data: { recipient: ADA, message_id: "m", received_at: "2026-11-20T10:00:00.000Z" } },
  { type: "RecipientSuppressed", data: { recipient: ADA, reason: "by_hand" } },
  { type: "RecipientRetryAllowed", data: { recipient: ADA } },
  { type: "RunStarted", data: { run_id: RUN, dry_run: false } },
  { type: "RunStopRequested", data: { run_id: RUN } },
  { type: "RunAbandoned", data: { run_id: RUN, ...counts } },
  outcomeOf("DispatchAbandoned", { ...DISPATCH, detail: "gone", refused: true }),
  outcomeOf("DispatchInDoubt", { ...DISPATCH, detail: "timed out" }),
  { type: "DispatchRetryRequested", data: { event_id: RUN, source: 1, channel: "ads" } },
  { type: "DispatchDiscarded", data: { event_id: RUN, source: 1, channel: "ads", why: "over" } },
  { type: "ChannelSuspended", data: { channel: "chat", network: "slack", detail: "", credential: "c" } },
  { type: "ChannelResumed", data: { channel: "chat", why: "by_hand" } },
  { type: "LogVerified", data: { position: 1, hash: "h", checked: 1, result: "broken", fault: "altered" } },
];

/** The events as recorded, newest first, a minute apart. */
async function recorded(...newEvents: readonly NewEvent[]): Promise<readonly Recorded[]> {
  const harness = await openConsole();
  await harness.append("elsewhere", ...newEvents);
  const events = await Array.fromAsync(harness.store.read({ backwards: true }));
  return events.map((event, at) => ({
    ...event,
    time: new Date(Date.UTC(2026, 10, 20) - at * MINUTE_MS).toISOString(),
  }));
}

const VIEW = { state: () => runs.initial(), settings: { timezone: "UTC" } } as unknown as View<"runs">;

const positionsOf = (events: readonly Recorded[]) =>
  toLines(events).map((line) => line.events.map(({ position }) => position));

async function summaryOf(events: readonly Recorded[]): Promise<string | undefined> {
  const [summary] = await textsAt(
    renderToString(h(Lines, { view: VIEW, lines: toLines(events) })),
    "summary .breakable",
  );
  return summary?.text;
}

test("clicks and their deliveries are one line, which counts clicks, links, bots and deliveries", async () => {
  const both = await recorded(
    click("a"),
    delivered(),
    click("a", true),
    delivered(),
    delivered(),
    click("b"),
    refused(),
  );
  expect(positionsOf(both)).toEqual([[7, 6, 5, 4, 3, 2, 1]]);
  expect(await summaryOf(both)).toBe("3 clicks on 2 links, 1 by bots · 3 delivered · 1 to be retried");
  expect(await summaryOf(await recorded(click("a"), delivered(), delivered()))).toBe(
    "1 click on go.example/a · 2 delivered",
  );
  const batch = outcomeOf<"DispatchSucceeded">("DispatchSucceeded", { ...DISPATCH, latency_ms: 3 });
  const requests = batch.data.requests.map((request) => ({ ...request, sources: [[1, 40]] as const }));
  const many = { type: "DispatchSucceeded", data: { ...batch.data, requests } } as unknown as NewEvent;
  expect(await summaryOf(await recorded(many, delivered(), delivered()))).toBe("42 delivered");
});

test("imports, sends and skips are one line each", async () => {
  const sent = { type: "DirectMessageSent", data: { ...MESSAGE, message_id: "m", settled_by: "answer" } } as const;
  const skipped = {
    type: "DirectMessageSkipped",
    data: { run_id: RUN, recipient: ADA, reason: "suppressed" },
  } as const;
  const three = <Event>(event: Event) => [event, event, event];
  expect(await summaryOf(await recorded(...three(person("ada"))))).toBe("3 recipients imported");
  expect(await summaryOf(await recorded(...three(sent)))).toBe("3 messages sent");
  expect(await summaryOf(await recorded(...three(skipped)))).toBe("3 recipients skipped");
  expect(positionsOf(await recorded(...three(sent), ...three(skipped)))).toEqual([
    [6, 5, 4],
    [3, 2, 1],
  ]);
});

test("a line counts what it holds, and nothing that it does not hold", async () => {
  const link = {
    type: "LinkAdded",
    data: { domain: "go.example", code: "a", target: "https://example.com/" },
  } as const;
  const pause = {
    type: "RunPaused",
    data: { run_id: RUN, reason: "pace", until: "2026-11-20T10:00:00.000Z" },
  } as const;
  const attempt = {
    type: "DirectMessageAttempted",
    data: { ...MESSAGE, text: "Hi", variant: "A", day: "2026-11-20" },
  } as const;
  const consent = { type: "ConsentRecorded", data: { recipient: ADA, tracking: "granted" } } as const;
  expect(await summaryOf(await recorded(link, pause, pause))).toBe("1 link added · 2 pauses");
  expect(await summaryOf(await recorded(attempt, pause, link))).toBe("1 message on the way · 1 link added · 1 pause");
  expect(await summaryOf(await recorded(consent, consent, consent))).toBe("3 consents recorded");
  expect(await summaryOf(await recorded(person("ada"), consent, consent))).toBe(
    "1 recipient imported · 2 consents recorded",
  );
});

test.each(NEVER_GROUPED.map((event) => [event.type, event] as const))(
  "%s stands alone, however often it comes, and parts what is around it",
  async (_type, event) => {
    expect(positionsOf(await recorded(event, event, event, event))).toEqual([[4], [3], [2], [1]]);
    const around = await recorded(click("a"), click("a"), click("a"), event, click("a"), click("a"), click("a"));
    expect(positionsOf(around)).toEqual([[7, 6, 5], [4], [3, 2, 1]]);
  },
);

test("lines stand under the day of their newest event, in the time zone that days are of", async () => {
  const lines = toLines(await recorded(click("a"), click("a"), click("a"), ...NEVER_GROUPED.slice(0, 2)));
  const daysIn = async (timezone: string) => {
    const view = { ...VIEW, settings: { timezone } } as View<"runs">;
    const page = renderToString(h(Lines, { view, lines }));
    return [(await textsAt(page, "h3")).map(({ text }) => text), page.split("<ol").length - 1];
  };
  // One event is at midnight in UTC, the other a minute before.
  expect(await daysIn("UTC")).toEqual([["Friday, 20 November 2026", "Thursday, 19 November 2026"], 3]);
  expect(await daysIn("Asia/Tokyo")).toEqual([["Friday, 20 November 2026"], 2]);
});

test("two are shown one by one, and so is what lies more than an hour apart", async () => {
  expect(positionsOf(await recorded(click("a"), click("b")))).toEqual([[2], [1]]);
  const hour = await recorded(...Array.from({ length: 62 }, () => click("a")));
  expect(positionsOf(hour)).toEqual([Array.from({ length: 61 }, (_, at) => 62 - at), [1]]);
});

test("a long group shows the newest 10, and leads to all of it and to nothing else", async () => {
  const harness = await openConsole();
  await harness.append("elsewhere", person("ada"), ...Array.from({ length: 25 }, () => click("a")), person("bob"));
  const page = await pageAt(harness, "/activity");
  expect(await textsAt(page, "details .sentence")).toHaveLength(10);
  const all = /href="([^"]*)">All 25 events/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const shown = (await textsAt(await pageAt(harness, all), ".when")).flatMap(({ links }) => links);
  expect(shown).toEqual(Array.from({ length: 25 }, (_, at) => `/activity/${26 - at}`));
});

test("of more news than a page has lines, the next page begins where this one ends", async () => {
  const harness = await openConsole();
  const [failed] = NEVER_GROUPED;
  await harness.append("outreach", ...Array.from({ length: 150 }, () => failed!));
  const seen: string[] = [];
  let path: string | undefined = "/activity";
  while (path !== undefined) {
    const page: string = await pageAt(harness, path);
    seen.push(...(await textsAt(page, ".when")).flatMap(({ links }) => links));
    path = /href="([^"]*before=[^"]*)">Older events/.exec(page)?.[1]?.replaceAll("&amp;", "&");
  }
  expect(seen).toEqual(Array.from({ length: 150 }, (_, at) => `/activity/${150 - at}`));
});
