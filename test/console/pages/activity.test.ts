// On the memory harness.
import { describe, expect, test } from "bun:test";
import { type NewEvent, eventAt } from "../../../src/log/event-log.ts";
import { ask } from "../../harness/memory/app.ts";
import { outcomeOf } from "../../harness/memory/outcomes.ts";
import { click, openConsole, pageAt, person, textsAt } from "../pages.ts";

const DETAIL = { lane: "clicks", low_watermark: 1 } as const;

/** A click that is dispatched to two channels. */
function dispatched(code: string): NewEvent {
  const { data } = click(code) as NewEvent<"LinkClicked">;
  return { type: "LinkClicked", data: { ...data, channels: ["ads", "chat"] } };
}

const sentencesOf = async (page: string) => (await textsAt(page, ".events .sentence")).map(({ text }) => text);

describe("the activity", () => {
  test("shows the newest events first, by type and stream, page by page", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", ...Array.from({ length: 101 }, () => click("a")));
    await harness.append("outreach", person("ada"));
    const first = await pageAt(harness, "/activity?show=everything");
    const positions = (page: string) =>
      [...page.matchAll(/<div class="when"><a href="\/activity\/(\d+)"/g)].map(([, at]) => Number(at));
    expect(positions(first)).toEqual(Array.from({ length: 100 }, (_, index) => 102 - index));
    const older = /href="([^"]*before=[^"]*)">Older events/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(positions(await pageAt(harness, older))).toEqual([2, 1]);
    expect(positions(await pageAt(harness, "/activity?type=RecipientAdded"))).toEqual([102]);
    expect(positions(await pageAt(harness, "/activity?stream=outreach"))).toEqual([102]);
    expect(positions(await pageAt(harness, "/activity?stream=nobody"))).toEqual([]);
  });

  test("opens an event with its hash, the one before it, and who caused it", async () => {
    const harness = await openConsole();
    await harness.append("outreach", person("ada"), person("bob"));
    const page = await pageAt(harness, "/activity/2");
    expect(page).toContain((await harness.store.hashAt(2)) ?? "none");
    expect(page).toContain((await harness.store.hashAt(1)) ?? "none");
    expect(page).toContain("&quot;bob&quot;");
    expect((await ask(harness.app, "/activity/3")).status).toBe(404);
    expect(page).toContain('href="/api/audit/proof/2"');
  });
});

describe("the page of a click", () => {
  test("shows every attempt on each channel up to the final one, and what it came to", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"), dispatched("a"));
    const ads = { ...DETAIL, channel: "ads", status: 200 } as const;
    await harness.append(
      "delivery-ads",
      outcomeOf("DispatchFailed", {
        ...ads,
        source: 1,
        status: 503,
        detail: "busy",
        retry_at: "2026-11-20T10:00:00.000Z",
      }),
      outcomeOf("DispatchSucceeded", { ...ads, source: 2, latency_ms: 3 }),
      outcomeOf("DispatchSucceeded", { ...ads, source: 1, attempt: 2, latency_ms: 3 }),
    );
    const page = await pageAt(harness, "/activity/1");
    const [failed, succeeded, ...others] = await sentencesOf(page);
    expect(failed).toStartWith("Ads: position 1 not delivered (attempt 1, 503)");
    expect(succeeded).toStartWith("Ads: position 1 delivered (attempt 2");
    expect(others).toEqual([]);
    expect(await textsAt(page, "h3")).toMatchObject([{ text: "ads" }, { text: "chat" }]);
    expect(page).toContain("No attempt is recorded yet.");
  });

  test("of a retried dead letter goes on with the outcome of the retry", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"));
    const chat = { ...DETAIL, channel: "chat", source: 1 } as const;
    const { id } = await eventAt(harness.store, 1);
    await harness.append("delivery-chat", outcomeOf("DispatchAbandoned", { ...chat, detail: "gone", refused: true }));
    await harness.append("requests", {
      type: "DispatchRetryRequested",
      data: { event_id: id, source: 1, channel: "chat" },
    });
    await harness.append("delivery-chat", outcomeOf("DispatchSucceeded", { ...chat, source: 3, latency_ms: 3 }));
    const ended = ["Chat: position 1 became a dead letter", "An operator retried", "Chat: position 3 delivered"];
    const sentences = await sentencesOf(await pageAt(harness, "/activity/1"));
    expect(sentences.map((sentence, at) => sentence.slice(0, ended[at]?.length))).toEqual(ended);
    expect(await sentencesOf(await pageAt(harness, "/activity/3"))).toHaveLength(1);
  });

  test("whose channel is far behind names the command that looks further", async () => {
    const harness = await openConsole();
    await harness.append("link-go.example/a", dispatched("a"), dispatched("b"));
    const other = outcomeOf("DispatchSucceeded", { ...DETAIL, channel: "ads", source: 2, latency_ms: 3 });
    await harness.append("delivery-ads", ...Array.from({ length: 1_000 }, () => other));
    expect(await pageAt(harness, "/activity/1")).toContain("This channel was far behind");
    expect(await pageAt(harness, "/activity/2")).not.toContain("This channel was far behind");
  });
});

test("the page of what requests nothing has no such part", async () => {
  const harness = await openConsole();
  await harness.append("outreach", person("ada"));
  expect(await pageAt(harness, "/activity/1")).not.toContain(">Outcomes<");
});
